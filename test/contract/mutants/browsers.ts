/**
 * Sections of the contract on a service in this process, for test/mutants.config.mjs: the first of three files.
 * Sections that start services of their own are in none.
 */

import { onSections } from '../sections.ts'

onSections('GET /challenge', 'POST /verify', 'sites and origins', 'fields of a solution', 'CORS')

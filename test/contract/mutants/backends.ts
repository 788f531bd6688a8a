/**
 * Sections of the contract on a service in this process, for test/mutants.config.mjs: the second of three files.
 * Sections that start services of their own are in none.
 */

import { onSections } from '../sections.ts'

onSections('POST /verify-token', 'credentials', 'POST /siteverify', 'tokens', 'bodies that are no good')

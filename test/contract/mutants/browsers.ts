/** test/mutants.config.mjs runs this and its neighbours: sections of the contract on a service in this process, by what they reach. */

import { onSections } from '../sections.ts'

onSections('GET /challenge', 'POST /verify', 'sites and origins', 'fields of a solution', 'CORS')

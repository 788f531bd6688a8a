/** Used by test/mutants.config.mjs, like its neighbours: sections of the contract on a service in this process. */

import { onSections } from '../sections.ts'

onSections('GET /challenge', 'POST /verify', 'sites and origins', 'fields of a solution', 'CORS')

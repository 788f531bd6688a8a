/** Used by test/mutants.config.mjs, like its neighbours: sections of the contract on a service in this process. */

import { onSections } from '../sections.ts'

onSections('POST /verify-token', 'credentials', 'POST /siteverify', 'tokens', 'bodies that are no good')

/** Used by test/mutants.config.mjs, as browsers.ts says. */

import { onSections } from '../sections.ts'

onSections('POST /verify-token', 'credentials', 'POST /siteverify', 'tokens', 'bodies that are no good')

/** Used by test/mutants.config.mjs, as browsers.ts says. */

import { onSections } from '../sections.ts'

onSections('paths and methods', 'score and IP rules', 'puzzles', 'limits for browsers', 'limits for backends')

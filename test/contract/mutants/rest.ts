/** Used by test/mutants.config.mjs, like its neighbours: sections of the contract on a service in this process. */

import { onSections } from '../sections.ts'

onSections('paths and methods', 'score and IP rules', 'puzzles', 'limits for browsers', 'limits for backends')

/** Used by test/mutants.config.mjs, as browsers.ts says. */

import { onSections } from '../sections.ts'

onSections(
  'paths, methods and sizes',
  'score and IP rules',
  'puzzles',
  'limits for browsers',
  'limits for backends',
)

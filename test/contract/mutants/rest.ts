import { onSections } from '../sections.ts'

onSections(
  'paths, methods and sizes',
  'limits for browsers',
  'limits for backends',
  'puzzles',
  'score and IP rules',
)

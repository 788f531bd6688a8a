/** The torture suite in small, without the cases of quick.test.ts. `npm run torture`, by hand, runs the full sizes. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CASES } from './cases.ts'
import { QUICK_CASES, testsInSmall } from './in-small.ts'

/** A flood that must be too much, and a loop that lets nothing else of its process run. */
const ALONE: readonly number[] = [9, 13]

test('there are 15 cases, in order', () => {
  assert.deepEqual(
    CASES.map(({ number }) => number),
    Array.from({ length: 15 }, (_, index) => index + 1),
  )
})

testsInSmall(CASES.filter(({ number }) => ALONE.includes(number)))
testsInSmall(
  CASES.filter(({ number }) => !ALONE.includes(number) && !QUICK_CASES.includes(number)),
  2,
)

/**
 * The torture suite in small: every case for some seconds, always with the same choices, and no times are judged. The full
 * sizes are for `npm run torture`, by hand.
 */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CASES } from './cases.ts'
import { verdictText } from './report.ts'
import { runCase } from './run-case.ts'

const SEED = 1
/** For each of 14 cases, so that all take less than six minutes. */
const SECONDS = 16

test('there are 14 cases, in order', () => {
  assert.deepEqual(
    CASES.map(({ number }) => number),
    Array.from({ length: 14 }, (_, index) => index + 1),
  )
})

for (const one of CASES) {
  test(`torture ${one.number} ${one.name}: ${one.aim}`, async t => {
    const options = { seed: SEED, seconds: SECONDS, historyDir: undefined, onProgress: () => {} }
    const verdict = await runCase(one, options)
    t.diagnostic(verdictText(verdict))
    assert.ok(verdict.holds, verdictText(verdict))
  })
}

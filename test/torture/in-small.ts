/** The torture suite in small: each case takes some seconds, makes the same choices every time, and judges no times. */

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { runCase, type TortureCase, verdictText } from './run.ts'

const SEED = 1
/** For each case. */
const SECONDS = 12
/** The cases that `npm test` runs; `test:rest` runs the others. */
export const QUICK_CASES: readonly number[] = [5, 14]

/** @param concurrency how many cases run at a time: most of them wait most of the time */
export function testsInSmall(cases: readonly TortureCase[], concurrency = 1): void {
  describe('torture', { concurrency }, () => {
    for (const one of cases) {
      test(`torture ${one.number} ${one.name}: ${one.aim}`, async t => {
        const options = { seed: SEED, seconds: SECONDS, historyDir: undefined, onProgress: () => {} }
        const verdict = await runCase(one, options)
        t.diagnostic(verdictText(verdict))
        assert.ok(verdict.holds, verdictText(verdict))
      })
    }
  })
}

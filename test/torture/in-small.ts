/** The torture suite in small: cases for some seconds each, always with the same choices, and no times are judged. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { verdictText } from './report.ts'
import type { TortureCase } from './run.ts'
import { runCase } from './run-case.ts'

const SEED = 1
/** For each case, so that all take less than six minutes. */
const SECONDS = 16
/** Those that `npm test` runs; the others run with the rest. */
export const QUICK_CASES: readonly number[] = [5, 14]

export function testsInSmall(cases: readonly TortureCase[]): void {
  for (const one of cases) {
    test(`torture ${one.number} ${one.name}: ${one.aim}`, async t => {
      const options = { seed: SEED, seconds: SECONDS, historyDir: undefined, onProgress: () => {} }
      const verdict = await runCase(one, options)
      t.diagnostic(verdictText(verdict))
      assert.ok(verdict.holds, verdictText(verdict))
    })
  }
}

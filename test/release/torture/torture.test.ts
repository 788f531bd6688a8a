/** The torture suite in small, with the same choices every time; no times are judged. `npm run torture`, by hand, runs the full sizes. */

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { CASES } from './cases.ts'
import { runCase, verdictText } from './run.ts'

const SEED = 1
const SECONDS_A_CASE = 12
/** Number of the case that is a statistic of times, for a machine that does nothing else: left out here. */
const TIMES = 13
/** Number of the case whose flood must be too much for the service: it runs alone. */
const FLOOD = 9

// The flood runs alone, before the others, which wait most of the time: two of them at once.
for (const isAlone of [true, false])
  describe('torture', { concurrency: isAlone ? 1 : 2 }, () => {
    for (const one of CASES.filter(({ number }) => number !== TIMES && (number === FLOOD) === isAlone))
      test(`torture ${one.number} ${one.name}: ${one.aim}`, async t => {
        const options = { seed: SEED, seconds: SECONDS_A_CASE, onProgress: () => {} }
        const verdict = await runCase(one, options)
        t.diagnostic(verdictText(verdict))
        assert.ok(verdict.holds, verdictText(verdict))
      })
  })

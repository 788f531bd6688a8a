/**
 * The torture suite in small, and its own tools. Each case takes some seconds, makes the same choices every time, and judges no
 * times. `npm run torture`, by hand, runs the full sizes.
 */

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Random } from '../../harness/random.ts'
import { CASES } from './cases.ts'
import { slopeOf } from './memory.ts'
import { runCase, type TortureCase, verdictText } from './run.ts'

const SEED = 1
/** For each case. */
const SECONDS = 12
/** A flood that must be too much, and a loop that lets nothing else of its process run. */
const ALONE: readonly number[] = [9, 13]

testsInSmall(CASES.filter(({ number }) => ALONE.includes(number)))
testsInSmall(
  CASES.filter(({ number }) => !ALONE.includes(number)),
  2,
)

/** @param concurrency how many cases run at a time: most of them wait most of the time */
function testsInSmall(cases: readonly TortureCase[], concurrency = 1): void {
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

/** A saw-tooth with noise and a constant growth a minute. */
function samples(growth: number, seed: number) {
  const random = new Random(seed)
  return Array.from({ length: 600 }, (_, index) => {
    const at = index / 60
    return { at, value: 100_000 + growth * at + (index % 17) * 200 + random.below(2000) }
  })
}

test('slope: growth is told from noise', () => {
  let falseAlarms = 0
  for (let seed = 1; seed <= 200; seed++) {
    const grows = slopeOf(samples(300, seed))
    assert.ok(grows.perUnit > grows.plusMinus, `seed ${seed}: ${grows.perUnit} +- ${grows.plusMinus}`)
    const stays = slopeOf(samples(0, seed))
    if (stays.perUnit > stays.plusMinus) falseAlarms++
  }
  // At 97.5 %, one in 40 is wrong.
  assert.ok(falseAlarms <= 15, `${falseAlarms} of 200`)
})

/** The simulator of attackers and people decides as the running service does, and its page tells what the puzzles miss. */

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { compareWithService } from '../../bench/simulator/against-service.ts'
import { aimRows } from '../../bench/simulator/aims.ts'
import { figuresOf, Measure } from '../../bench/simulator/figures.ts'
import { type Result, simulate } from '../../bench/simulator/simulate.ts'
import { PUZZLES } from '../../src/protocol/proof.ts'

/** The twenty runs of this scenario would take half of all the time. Five of them, each counted four times, give the same verdicts. */
const [LONG_SCENARIO, LONG_RUNS] = ['offices-in-burst', 5]

test('effect.md tells every aim that a puzzle misses, and how many are met with both', () => {
  // The rows of `npm run bench:effect -- --aims`: aim, bound, what was found, verdict.
  const [sha256, hashwx] = PUZZLES.map(puzzle => {
    const longResults: Result[] = []
    return aimRows((scenario, index) => {
      const run = (seed: number) => simulate(scenario, { seed, speed: 1, puzzle })
      if (scenario.name !== LONG_SCENARIO) return run(1 + index)
      const shortIndex = index % LONG_RUNS
      return (longResults[shortIndex] ??= run(1 + shortIndex))
    }, puzzle)
  })
  const verdicts = sha256!.map(([aim, bound, , verdict], index) => [aim, bound, verdict, hashwx![index]![3]])
  const missed = verdicts.filter(row => row.includes('MISSED'))
  const page = readFileSync(new URL('../../docs/evidence/effect.md', import.meta.url), 'utf8')
  // A line of the page's table: | aim | bound | found with sha256 | verdict | found with hashwx | verdict |
  const cells = '[^|]* \\| (met|MISSED)'
  const line = new RegExp(`^\\| (.+) \\| ([<>]= [\\d.]+) \\| ${cells} \\| ${cells} \\|$`, 'gm')
  const inThePage = Array.from(page.matchAll(line), ([, ...cells]) => cells)
  assert.deepEqual(inThePage, missed)
  assert.match(page, new RegExp(`\\b${verdicts.length - missed.length} aims are met with both puzzles`))
})

test('people have recovered when a minute is as before the attack; never if the last minute of the scenario is not', () => {
  const addresses = { addresses: 1 }
  const attack = { name: 'a', rate: 1, from: 1, to: 2, addresses, work: 'none', address: 'free' } as const
  const scenario = { name: 'a scenario', about: '', minutes: 4, people: [], attacks: [attack] }
  /** @param bits of one challenge at the start of each minute; the attack lasts for the second minute */
  const recoverySeconds = (...bits: number[]) => {
    const measure = new Measure('sha256')
    for (const [minute, each] of bits.entries()) measure.issuedToPerson(minute * 60_000, each)
    return figuresOf(scenario, measure).recoverySeconds
  }
  assert.equal(recoverySeconds(18, 22, 18, 18), 0)
  // The minute from the attack's end on is hard, the one that begins 10 s later (the step) is not.
  assert.equal(recoverySeconds(18, 22, 22, 18), 10)
  assert.equal(recoverySeconds(18, 22, 22, 22), Infinity)
})

test('the simulator decides each request of a trace as the running service does, refusals and several difficulties among them', async () => {
  const [seconds, seed] = [12, 1]
  const { limited, bits, differences } = await compareWithService(seconds, seed)
  assert.deepEqual(differences, [])
  assert.ok(limited > 0)
  assert.ok(bits.length > 3, String(bits))
})

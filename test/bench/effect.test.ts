/** The simulator of attackers and people decides as the running service does, and its page tells what the puzzles miss. */

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { compareWithService } from '../../bench/simulator/against-service.ts'
import { aimRows } from '../../bench/simulator/aims.ts'
import { type Result, simulate } from '../../bench/simulator/simulate.ts'
import { PUZZLES, type PuzzleName } from '../../src/protocol/proof.ts'

/** Runs of this scenario take half of all the time: five show what the twenty of `--aims` do, in its verdicts. */
const [LONG, LONG_RUNS] = ['offices-in-burst', 5]

function rowsOf(puzzle: PuzzleName): string[][] {
  const known: Result[] = []
  return aimRows((scenario, index) => {
    const run = (seed: number) => simulate(scenario, { seed, speed: 1, puzzle })
    const few = index % LONG_RUNS
    return scenario.name === LONG ? (known[few] ??= run(1 + few)) : run(1 + index)
  }, puzzle)
}

test('effect.md tells every aim that a puzzle misses, and how many are met with both', () => {
  const [sha256, hashwx] = PUZZLES.map(rowsOf)
  const text = readFileSync(new URL('../../docs/evidence/effect.md', import.meta.url), 'utf8')
  const verdict = '[^|]* \\| (met|MISSED)'
  const row = new RegExp(`^\\| (.+) \\| ([<>]= [\\d.]+) \\| ${verdict} \\| ${verdict} \\|$`, 'gm')
  const told = Array.from(text.matchAll(row), ([, ...cells]) => cells)
  const rows = sha256!.map(([aim, wanted, , verdict], index) => [aim, wanted, verdict, hashwx![index]![3]])
  const missed = rows.filter(row => row.includes('MISSED'))
  assert.deepEqual(told, missed)
  assert.match(text, new RegExp(`\\b${rows.length - missed.length} aims are met with both puzzles`))
})

test('difficulties and refusals are those of the running service, all of them', async () => {
  const { limited, bits, differences } = await compareWithService(12, 1)
  assert.deepEqual(differences, [])
  assert.ok(limited > 0)
  assert.ok(bits.length > 3, String(bits))
})

/** The simulator of attackers and people: it decides by the service's rules, repeats itself, and draws what theory says. */

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { compareWithService } from '../../bench/simulator/against-service.ts'
import { aimRows } from '../../bench/simulator/aims.ts'
import { quantileOf } from '../../bench/simulator/figures.ts'
import { POPULATIONS, type Scenario } from '../../bench/simulator/scenario.ts'
import { simulate } from '../../bench/simulator/simulate.ts'
import { BASE_BITS } from '../../src/domain/site-fields.ts'
import type { DeviceClass } from '../../src/domain/solve-time.ts'
import { PUZZLES, type PuzzleName } from '../../src/protocol/proof.ts'
import { runBench } from './run-bench.ts'

const ROOT = new URL('../..', import.meta.url)
const LONE: Scenario = {
  name: 'lone',
  about: 'Visitors who never meet.',
  minutes: 1000,
  people: [{ name: 'people', rate: 120, addresses: { addresses: 1_000_000 } }],
}

for (const puzzle of PUZZLES)
  test(`${puzzle}: delays of lone visitors are those of the closed form, within 2 %`, () => {
    const { measure } = simulate(LONE, { seed: 1, speed: 1, puzzle })
    // Of hashwx, some of those whose browsers lack WebAssembly leave.
    const delays = measure.visits
      .map(({ delayMs = Number.POSITIVE_INFINITY }) => delayMs - 2 * POPULATIONS.roundTripMs)
      .sort((a, b) => a - b)
    assert.ok(delays.length > 100_000)
    for (const share of [0.5, 0.95]) {
      const hashes = 2 ** BASE_BITS[puzzle]
      const ratio = quantileOf(delays, share) / quantileOfMixture(share, hashes, POPULATIONS.devices, puzzle)
      assert.ok(Math.abs(ratio - 1) < 0.02, `${share}: ${ratio}`)
    }
  })

/** Milliseconds; of an exponential time of so many hashes in the mean, where speeds h are log-normal: E exp(-t h / W) = 1 - share. */
function quantileOfMixture(
  share: number,
  hashes: number,
  classes: readonly DeviceClass[],
  puzzle: PuzzleName = 'sha256',
): number {
  const survival = (ms: number) => {
    let [sum, weights] = [0, 0]
    for (const { share: people, medianMhs, sigma } of classes) {
      for (let z = -6; z <= 6; z += 0.01) {
        const weight = people * Math.exp((-z * z) / 2)
        sum += weight * Math.exp((-ms / hashes) * medianMhs[puzzle] * 1000 * Math.exp(sigma * z))
        weights += weight
      }
    }
    return sum / weights
  }
  let [low, high] = [0, hashes / 10]
  for (let step = 0; step < 60; step++) {
    const middle = (low + high) / 2
    if (survival(middle) > 1 - share) low = middle
    else high = middle
  }
  return low
}

test('side by side, low phones wait as long for both puzzles, and an attacker pays ten times more for hashwx', async () => {
  const args = ['--beside', '--json', '--only', 'lone-low-phone,stockpile-dump']
  const { stdout } = await runBench('effect', ...args)
  const lines = stdout
    .trim()
    .split('\n')
    .map(line => JSON.parse(line))
  const [[sha256, hashwx], [cheap, dear]] = [lines.slice(0, 2), lines.slice(2)]
  for (const quantile of ['p50', 'p95', 'p99'])
    assert.ok(Math.abs(sha256.all[quantile] / hashwx.all[quantile] - 1) < 1e-9)
  const ratio = dear.attacks.attack.cost.cpu / cheap.attacks.attack.cost.cpu
  assert.ok(ratio > 9.5 && ratio < 10.5, String(ratio))
})

test('effect.md tells every aim that a puzzle misses, and how many are met with both', () => {
  const [sha256, hashwx] = PUZZLES.map(puzzle =>
    aimRows((scenario, index) => simulate(scenario, { seed: 1 + index, speed: 1, puzzle }), puzzle),
  )
  const text = readFileSync(new URL('docs/evidence/effect.md', ROOT), 'utf8')
  const verdict = '[^|]* \\| (met|MISSED)'
  const told = text.matchAll(
    new RegExp(`^\\| (.+) \\| ([<>]= [\\d.]+) \\| ${verdict} \\| ${verdict} \\|$`, 'gm'),
  )
  const rows = sha256!.map(([aim, wanted, , verdict], index) => [aim, wanted, verdict, hashwx![index]![3]])
  const missed = rows.filter(row => row.includes('MISSED'))
  assert.deepEqual(
    [...told].map(([, ...cells]) => cells),
    missed,
  )
  assert.match(text, new RegExp(`\\b${rows.length - missed.length} aims are met with both puzzles`))
})

test('difficulties and refusals are those of the running service, all of them', async () => {
  const { limited, bits, differences } = await compareWithService(12, 1)
  assert.deepEqual(differences, [])
  assert.ok(limited > 0)
  assert.ok(bits.length > 3, String(bits))
})

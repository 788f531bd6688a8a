/** The simulator of attackers and people: it decides by the service's rules, repeats itself, and draws what theory says. */

import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { compareWithService } from '../../bench/effect/against-service.ts'
import { aimRows } from '../../bench/effect/aims.ts'
import { quantileOf } from '../../bench/effect/figures.ts'
import { policyOf } from '../../bench/effect/policy.ts'
import { builtInScenarios, busySites, POPULATIONS, type Scenario } from '../../bench/effect/scenario.ts'
import { simulate } from '../../bench/effect/simulate.ts'
import { type DeviceClass, SPEED_ASSUMED, timingFor } from '../../src/domain/solve-time.ts'
import { UsageError } from '../harness/command-line.ts'

const ROOT = new URL('../..', import.meta.url)
const POLICY = 'difficulty policy load sources limits score fingerprints nonce address-log'.split(' ')

test('no rule of the policy is written a second time in the simulator', () => {
  const names = POLICY.flatMap(module => {
    const text = readFileSync(new URL(`src/domain/${module}.ts`, ROOT), 'utf8')
    return [...text.matchAll(/^(?:export )?(?:const|function|class) (\w+)/gm)].map(([, name]) => name!)
  })
  assert.ok(names.includes('difficultyFor') && names.includes('DEFAULT_POLICY'))
  const folder = new URL('bench/effect/', ROOT)
  for (const file of readdirSync(folder).filter(name => name.endsWith('.ts'))) {
    const text = readFileSync(new URL(file, folder), 'utf8')
    const defined = [...text.matchAll(/^(?:export )?(?:const|function|class) (\w+)/gm)].map(
      ([, name]) => name!,
    )
    const copied = defined.filter(name => names.includes(name) && !/^(SLOTS|MINUTE_MS|DAY_MS)$/.test(name))
    assert.deepEqual(copied, [], file)
  }
})

const LONE: Scenario = {
  name: 'lone',
  about: 'Visitors who never meet.',
  minutes: 1000,
  people: [{ name: 'people', rate: 120, addresses: { addresses: 1_000_000 } }],
}

test('delays of lone visitors are those of the closed form, within 1 %', async () => {
  const { measure } = await simulate(LONE, { seed: 1, speed: 1 })
  const delays = measure.visits
    .map(({ delayMs }) => delayMs! - 2 * POPULATIONS.roundTripMs)
    .sort((a, b) => a - b)
  assert.ok(delays.length > 100_000)
  for (const share of [0.5, 0.95]) {
    const ratio = quantileOf(delays, share) / quantileOfMixture(share, 2 ** 18, POPULATIONS.devices)
    assert.ok(Math.abs(ratio - 1) < 0.01, `${share}: ${ratio}`)
  }
})

test('95 of 100 visitors with these devices are done in the time that a site names', () => {
  const median = 15e6 // half of the devices are slower
  const { exactBase } = timingFor({ solveMs: 300, min: 16, max: 28 }, Math.log2(median / SPEED_ASSUMED))
  const ratio = quantileOfMixture(0.95, 2 ** exactBase, POPULATIONS.devices) / 300
  assert.ok(Math.abs(ratio - 1) < 0.01, String(ratio))
})

/** Milliseconds; of an exponential time of so many hashes in the mean, where speeds h are log-normal: E exp(-t h / W) = 1 - share. */
function quantileOfMixture(share: number, hashes: number, classes: readonly DeviceClass[]): number {
  const survival = (ms: number) => {
    let [sum, weights] = [0, 0]
    for (const { share: people, medianMhs, sigma } of classes) {
      for (let z = -6; z <= 6; z += 0.01) {
        const weight = people * Math.exp((-z * z) / 2)
        sum += weight * Math.exp((-ms / hashes) * medianMhs * 1000 * Math.exp(sigma * z))
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

test('a seed gives the same figures again, another seed others', async () => {
  const scenario = builtInScenarios().find(({ name }) => name === 'nat-griefer')!
  const run = async (seed: number) => JSON.stringify((await simulate(scenario, { seed, speed: 1 })).figures)
  assert.equal(await run(7), await run(7))
  assert.notEqual(await run(7), await run(8))
})

test('a revision decides by its own rules, beside those of this tree', async () => {
  const policy = await policyOf('HEAD')
  const scenario = { ...LONE, minutes: 5 }
  const { figures } = await simulate(scenario, { seed: 1, speed: 1, policy })
  assert.ok(figures.all.visits > 500 && figures.bitsMax === 18)
  await assert.rejects(policyOf('no-such-revision'), UsageError)
})

test('what the neighbours of an attacker pay is told, and what people waited beyond their luck', async () => {
  const scenario = builtInScenarios().find(({ name }) => name === 'nat-griefer')!
  const { figures } = await simulate(scenario, { seed: 1, speed: 1 })
  assert.ok(figures.collateral!.bits > 0 && figures.collateral!.score < 0)
  const lone = await simulate({ ...LONE, minutes: 5 }, { seed: 1, speed: 1 })
  assert.ok(lone.figures.all.added.p99! < 1e-6)
  assert.ok(figures.byPeople.office!.added.p95! > figures.byPeople.people!.added.p95!)
})

test('addresses that come again work as much for a token at 64 workers, of which each sees little of them, as at two', async () => {
  const scenario = busySites().find(({ name }) => name === 'evade-400')!
  const work = async (workers: number) => {
    const { measure } = await simulate({ ...scenario, workers }, { seed: 1, speed: 1 })
    const { hashes, accepted } = measure.ofAttack(scenario.attacks![0]!)
    return hashes / accepted
  }
  const [two, many] = [await work(2), await work(64)]
  assert.ok(Math.abs(Math.log(two / many)) < 0.1, `${two} ${many}`)
})

test('of a site with a solving time, lying votes move the bits', async () => {
  const scenario: Scenario = { ...LONE, minutes: 300, measured: [240, 300], solveMs: 178 }
  const bits = async (claims?: 'fast' | 'slow') => {
    const liars = { name: 'liars', rate: 120, from: 0, to: 300, addresses: { addresses: 200_000 } } as const
    const attacks = claims && [
      { ...liars, work: 'right', threads: 64, address: 'residential', claims } as const,
    ]
    return (await simulate({ ...scenario, ...(attacks && { attacks }) }, { seed: 1, speed: 1 })).figures
      .meanBits
  }
  const [slow, honest, fast] = [await bits('slow'), await bits(), await bits('fast')]
  assert.ok(slow < honest - 0.2 && fast > honest + 0.2, [slow, honest, fast].join())
})

test('solutions that are kept come all at once', async () => {
  const scenario = builtInScenarios().find(({ name }) => name === 'stockpile-dump')!
  const { measure } = await simulate(scenario, { seed: 1, speed: 1 })
  const filled = measure.bins.filter(({ accepted }) => accepted > 0)
  assert.equal(filled.length, 1)
  assert.ok(filled[0]!.accepted > 1000)
})

test('effect.md tells which aims are met and which are missed', async () => {
  const rows = await aimRows((scenario, index) => simulate(scenario, { seed: 1 + index, speed: 1 }))
  const text = readFileSync(new URL('docs/effect.md', ROOT), 'utf8')
  const told = [...text.matchAll(/^\| (.+) \| ([<>]= [\d.]+) \| .* \| (met|MISSED) \|$/gm)]
  assert.deepEqual(
    told.map(([, aim, wanted, verdict]) => [aim, wanted, verdict]),
    rows.map(([aim, wanted, , verdict]) => [aim, wanted, verdict]),
  )
})

test('difficulties and refusals are those of the running service, all of them', async () => {
  const { limited, bits, differences } = await compareWithService(12, 1)
  assert.deepEqual(differences, [])
  assert.ok(limited > 0)
  assert.ok(bits.length > 3, String(bits))
})

/** The simulator of attackers and people: it decides by the service's rules, repeats itself, and draws what theory says. */

import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { quantileOf } from '../../bench/effect/measure.ts'
import { builtInScenarios, POPULATIONS, type Scenario } from '../../bench/effect/scenario.ts'
import { simulate } from '../../bench/effect/simulate.ts'

const ROOT = new URL('../..', import.meta.url)
const POLICY = ['difficulty', 'load', 'sources', 'limits', 'score', 'fingerprints', 'nonce', 'address-log']

test('no rule of the policy is written a second time in the simulator', () => {
  const names = POLICY.flatMap(module => {
    const text = readFileSync(new URL(`src/domain/${module}.ts`, ROOT), 'utf8')
    return [...text.matchAll(/^(?:export )?(?:const|function|class) (\w+)/gm)].map(([, name]) => name!)
  })
  assert.ok(names.includes('difficultyFor') && names.includes('LOAD_TOLERATED'))
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
  people: [{ name: 'people', rate: 120, addresses: { addresses: 1_000_000 }, device: 'mid phone' }],
}

test('delays of lone visitors are those of the closed form, within 1 %', async () => {
  const { measure } = await simulate(LONE, { seed: 1, speed: 1 })
  const { medianMhs, sigma } = POPULATIONS.devices.find(({ name }) => name === 'mid phone')!
  const delays = measure.visits
    .map(({ delayMs }) => delayMs! - 2 * POPULATIONS.roundTripMs)
    .sort((a, b) => a - b)
  assert.ok(delays.length > 100_000)
  for (const share of [0.5, 0.95]) {
    const expected = quantileOfMixture(share, 2 ** 18 / (medianMhs * 1000), sigma)
    const ratio = quantileOf(delays, share) / expected
    assert.ok(Math.abs(ratio - 1) < 0.01, `${share}: ${ratio}`)
  }
})

/** Of an exponential time with this mean for the median device, where speeds are log-normal: E exp(-t h / W) = 1 - share. */
function quantileOfMixture(share: number, meanMs: number, sigma: number): number {
  const survival = (ms: number) => {
    let [sum, weights] = [0, 0]
    for (let z = -6; z <= 6; z += 0.01) {
      const weight = Math.exp((-z * z) / 2)
      sum += weight * Math.exp((-ms / meanMs) * Math.exp(sigma * z))
      weights += weight
    }
    return sum / weights
  }
  let [low, high] = [0, 100 * meanMs]
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

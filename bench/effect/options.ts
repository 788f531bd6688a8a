/** The options of `npm run bench:effect`. */

import { integer, number, parsed, writableFile } from '../support/arguments.ts'

export const HELP = `npm run bench:effect -- [options]

What the policy costs attackers and people: simulated visits on a virtual clock, decided by the service's own rules.

  --only NAMES      of the scenarios in bench/effect/scenarios, separated by commas; without it, all
  --scenario FILE   one scenario of your own, a JSON file in the form of those; bench/effect/scenario.ts describes it
  --seed N          1 to 4294967295; equal seeds give equal figures to the last digit (default 1)
  --speed X         people's devices X times as fast; without it 1, and the p95 also for half and twice as fast
  --before REV      beside it the policy of a Git revision, by its own bench/effect/service.ts
  --against-service instead: five minutes of requests to the built service, each decision against the simulated one
  --json            one JSON line for each scenario, policy and speed
  --report FILE     a page with the time line of each scenario
  --help            this text

Columns: seconds to a token (p50, p95, p99) of all people; x1/2, x2: the p95 of devices half and twice as fast; added: p95 and
p99 of what the same luck would not have waited at the base; gone: left without a token; held: met a limit; bits: mean and
highest of people's challenges; over: bits of the worst minute above the second half of the attack; accepted: the attackers'
tokens a minute; dollars: of the attackers per 1,000 tokens, as processors + GPUs + addresses + bytes; work: attackers'
processor time over ours; s/$: seconds that people waited longer for each dollar; back: seconds after the attack until people's
bits are as before; others: what the attack adds to people's bits and takes from their score, of those behind the attackers'
addresses if there are such.

What was wrong until revision fdd5719 shows with --before fdd5719: challenge-only-inflation, four bits for everybody without one
hash; estimator-poison, an attack that becomes usual; flash-crowd, a good day that pays like an attack; nat-griefer, wrong
counters that neighbours pay for; v6-slash48, datacentre-24s, networks that never add up. Work shows what a proof costs the
attacker, and p95 and p99 over p50 the luck of a single counter.`

export interface EffectOptions {
  readonly only: readonly string[] | undefined
  readonly scenario: string | undefined
  readonly againstService: boolean
  readonly seed: number
  /** The first is the one of the table. */
  readonly speeds: readonly number[]
  /** A revision. */
  readonly before: string | undefined
  readonly json: boolean
  readonly report: string | undefined
}

export function parseOptions(args: readonly string[]): EffectOptions | undefined {
  const { values } = parsed(args, {
    options: {
      only: { type: 'string' },
      scenario: { type: 'string' },
      seed: { type: 'string', default: '1' },
      speed: { type: 'string' },
      before: { type: 'string' },
      'against-service': { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
      report: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return undefined
  return {
    only: values.only?.split(','),
    scenario: values.scenario,
    againstService: values['against-service'],
    seed: integer('--seed', values.seed, 1, 2 ** 32 - 1),
    speeds: values.speed === undefined ? [1, 0.5, 2] : [number('--speed', values.speed, 0.01, 100)],
    before: values.before,
    json: values.json,
    report: writableFile('--report', values.report),
  }
}

/** The options of `npm run bench:effect`. */

import { parsed, UsageError } from '../support/arguments.ts'

export const HELP = `npm run bench:effect -- [options]

What the policy costs attackers and people: simulated visits on a virtual clock, decided by the service's own rules.

  --only NAMES      of the scenarios in bench/effect/scenarios, separated by commas; without it, all
  --scenario FILE   one scenario of your own, a JSON file in the form of those; bench/effect/scenario.ts describes it
  --seed N          1 to 4294967295; equal seeds give equal figures to the last digit (default 1)
  --speed X         people's devices X times as fast (default 1)
  --json            one JSON line a scenario
  --report FILE     a page with the time line of each scenario
  --help            this text

Columns: seconds to a token (p50, p95, p99) of all people; gone: left without one; held: met a limit; bits: mean and highest
of people's challenges; accepted: the attackers' tokens a minute; dollars: of the attackers per 1,000 tokens, as processors +
GPUs + addresses + bytes; work: attackers' processor time over ours; s/$: seconds that people waited longer for each dollar;
back: seconds after the attack until people's bits are as before.`

export interface EffectOptions {
  readonly only: readonly string[] | undefined
  readonly scenario: string | undefined
  readonly seed: number
  readonly speed: number
  readonly json: boolean
  readonly report: string | undefined
}

export function parseOptions(args: readonly string[]): EffectOptions | undefined {
  const { values } = parsed(args, {
    options: {
      only: { type: 'string' },
      scenario: { type: 'string' },
      seed: { type: 'string', default: '1' },
      speed: { type: 'string', default: '1' },
      json: { type: 'boolean', default: false },
      report: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) return undefined
  return {
    only: values.only?.split(','),
    scenario: values.scenario,
    seed: numberIn('--seed', values.seed, 1, 2 ** 32 - 1),
    speed: numberIn('--speed', values.speed, 0.01, 100),
    json: values.json,
    report: values.report,
  }
}

function numberIn(option: string, text: string, min: number, max: number): number {
  const value = Number(text)
  if (!(value >= min && value <= max))
    throw new UsageError(`${option}: expected ${min} to ${max}, got ${text}`)
  return value
}

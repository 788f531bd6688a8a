/** The options of `npm run bench:effect`. */

import { integer, number, text, toggle, type Values } from '../../test/harness/command-line.ts'
import { OUTPUT } from '../report/publish.ts'

export const OPTIONS = {
  only: text('NAMES', 'Of the scenarios in bench/effect/scenarios, separated by commas; without it, all.'),
  scenario: text('FILE', 'One scenario of your own, a JSON file as bench/effect/scenario.ts describes it.'),
  seed: integer(1, 1, 2 ** 32 - 1, 'Equal seeds give equal figures to the last digit'),
  speed: number(undefined, 0.01, 100, "How fast people's devices are; without it 1, p95 also for 1/2 and 2"),
  base: number(undefined, 16, 28, 'Bits of all sites, fractions too; without it, the default'),
  before: text('REV', 'Beside it the policy of a Git revision, by its own bench/effect/service.ts.'),
  againstService: toggle('Instead: five minutes of requests to the built service, each decision compared.'),
  aims: toggle('Instead: what the policy is meant to do, beside what it does.'),
  ...OUTPUT,
  json: toggle('One JSON line for each scenario, policy and speed.'),
}

export interface EffectOptions extends Omit<Values<typeof OPTIONS>, 'only' | 'speed'> {
  readonly only: readonly string[] | undefined
  /** The first is the one of the table. */
  readonly speeds: readonly number[]
}

export function effectOptions({ only, speed, ...rest }: Values<typeof OPTIONS>): EffectOptions {
  return { ...rest, only: only?.split(','), speeds: speed === undefined ? [1, 0.5, 2] : [speed] }
}

export const DETAILS = `\
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

/** `npm run bench:effect`: what the policy costs attackers and people. */

import {
  integer,
  number,
  ToolError,
  tell,
  text,
  texts,
  toggle,
  tool,
  type Values,
} from '../../test/harness/command-line.ts'
import { renderTable } from '../report/publish.ts'
import { compareWithService } from './against-service.ts'
import { AIM_COLUMNS, aimRows } from './aims.ts'
import { type PolicyMaker, policyOf } from './policy.ts'
import { replay } from './replay.ts'
import { type Row, scenarioTable } from './report.ts'
import { builtInScenarios, busySites, type Scenario, scenarioOf } from './scenario.ts'
import { Service } from './service.ts'
import { type Result, simulate } from './simulate.ts'

const OPTIONS = {
  only: text(
    'NAMES',
    'Of the scenarios in bench/simulator, separated by commas; without it, all of scenarios.json.',
  ),
  busy: toggle('Those of busy-sites.json instead: millions of visits, some minutes.'),
  scenario: text(
    'FILE',
    'One scenario of your own, a JSON file as bench/simulator/scenario.ts describes it.',
  ),
  seed: integer(1, 1, 2 ** 32 - 1, 'Equal seeds give equal figures to the last digit'),
  speed: number(undefined, 0.01, 100, "How fast people's devices are; without it 1, p95 also for 1/2 and 2"),
  gpus: number(0, 0, 1, "Share of people's devices whose GPU helps from 20 bits on"),
  base: number(undefined, 16, 28, 'Bits of all sites, fractions too; without it, the default'),
  before: text('REV', 'Beside it the policy of a Git revision, by its own bench/simulator/service.ts.'),
  againstService: toggle('Instead: five minutes of requests to the built service, each decision compared.'),
  trace: texts('FILE', 'Instead: decides again what a worker recorded (POWGATE_TRACE_FILE); see --policy.'),
  policy: text('FILE', 'With --trace: JSON with numbers of src/domain/policy.ts; those left out stay.'),
  aims: toggle('Instead: what the policy is meant to do, beside what it does.'),
  json: toggle('One JSON line for each scenario, policy and speed.'),
}

interface EffectOptions extends Omit<Values<typeof OPTIONS>, 'only' | 'speed'> {
  readonly only: readonly string[] | undefined
  /** The first is the one of the table. */
  readonly speeds: readonly number[]
}

function effectOptions({ only, speed, ...rest }: Values<typeof OPTIONS>): EffectOptions {
  const speeds = speed === undefined ? [1, 0.5, 2] : [speed]
  return { ...rest, only: only?.split(','), speeds: speeds as [number] }
}

const DETAILS = `\
Columns: seconds to a token (p50, p95, p99) of all people; x1/2, x2: the p95 of devices half and twice as fast; added: p95 and
p99 of what the same luck would not have waited at the base; gone: left without a token; held: met a limit; bits: mean and
highest of people's challenges; over: bits of the worst minute above the second half of the attack; accepted: the attackers'
tokens a minute; dollars: of the attackers per 1,000 tokens, as processors + GPUs + addresses + bytes; work: attackers'
processor time over ours; s/$: seconds that people waited longer for each dollar; back: seconds after the attack until people's
bits are as before; others: what the attack adds to people's bits and takes from their score, of those behind the attackers'
addresses if there are such. Work shows what a proof costs the attacker, and p95 and p99 over p50 the luck of a single counter.`

const TRACE_SECONDS = 300

export const EFFECT = tool({
  name: 'bench:effect',
  about:
    "What the policy costs attackers and people: simulated visits on a virtual clock, decided by the service's own rules.",
  options: OPTIONS,
  example: '--only flash-crowd',
  details: DETAILS,
  run: options => run(effectOptions(options)),
})

async function check(seed: number): Promise<number> {
  const { requests, limited, bits, differences } = await compareWithService(TRACE_SECONDS, seed)
  for (const difference of differences) tell(difference)
  const counts = `${requests} requests, ${limited} refused, difficulties ${bits.join(' ')}`
  process.stdout.write(`${counts}: ${differences.length} decided differently\n`)
  return differences.length === 0 ? 0 : 1
}

async function tellAims({ seed, speeds: [speed], base, gpus }: EffectOptions): Promise<number> {
  const rows = await aimRows((scenario, index) => {
    tell(scenario.name)
    return simulate(scenario, { seed: seed + index, speed: speed!, gpus })
  }, base)
  process.stdout.write(`${renderTable(AIM_COLUMNS, rows)}\n`)
  return 0
}

async function run(options: EffectOptions): Promise<number> {
  if (options.againstService) return check(options.seed)
  if (options.trace.length > 0 || options.policy) return replay(options.trace, options.policy)
  if (options.aims) return tellAims(options)
  const scenarios = chosen(options).map(each => ({ ...each, base: options.base ?? each.base }))
  const policies: Record<string, PolicyMaker> = { now: Service }
  if (options.before !== undefined) policies.before = await policyOf(options.before)
  const rows: Row[] = []
  for (const scenario of scenarios) {
    for (const policy of Object.keys(policies).sort()) {
      const results: Result[] = []
      for (const speed of options.speeds) {
        const startedAtMs = performance.now()
        const { seed, gpus } = options
        const result = await simulate(scenario, { seed, speed, gpus, policy: policies[policy] })
        results.push(result)
        const seconds = ((performance.now() - startedAtMs) / 1000).toFixed(1)
        tell(`${scenario.name}, ${policy}, x${speed}: ${result.measure.visits.length} visits in ${seconds} s`)
        if (options.json) tellLine({ scenario: scenario.name, policy, speed, ...result.figures })
      }
      rows.push({ policy, results: results as [Result, ...Result[]] })
    }
  }
  const { columns, rows: cells } = scenarioTable('Scenarios', rows)
  if (!options.json) process.stdout.write(`${renderTable(columns, cells)}\n`)
  return 0
}

function tellLine(figures: object): void {
  process.stdout.write(`${JSON.stringify(figures)}\n`)
}

function chosen({ scenario, only, busy }: EffectOptions): readonly Scenario[] {
  if (scenario !== undefined) return [scenarioOf(scenario)]
  if (only === undefined) return busy ? busySites() : builtInScenarios()
  const all = [...builtInScenarios(), ...busySites()]
  for (const name of only)
    if (!all.some(known => known.name === name)) throw new ToolError(`--only: there is no scenario ${name}`)
  return all.filter(({ name }) => only.includes(name))
}

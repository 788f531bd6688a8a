/** `npm run bench:effect`: the effect of the policy, simulated: what it costs attackers and people. */

import { BASE_BITS } from '../../src/domain/site-fields.ts'
import { PUZZLES } from '../../src/protocol/proof.ts'
import type { Values } from '../../test/harness/command-line.ts'
import { integer, number, ToolError, tell, text, toggle, tool } from '../../test/harness/command-line.ts'
import { DEVICE_CLASSES } from '../../test/harness/devices.ts'
import { choice } from '../report/options.ts'
import { table } from '../report/report.ts'
import { compareWithService } from './against-service.ts'
import { aimRows, aimTable } from './aims.ts'
import { BESIDE_CELLS, CELLS } from './report.ts'
import { BUSY_SITES, SCENARIOS, type Scenario, scenarioOf } from './scenario.ts'
import { type Result, simulate } from './simulate.ts'

const OPTIONS = {
  only: text('NAMES', 'Scenarios of bench/simulator, separated by commas; all of scenarios.json without it.'),
  scenario: text(
    'FILE',
    'A scenario of your own instead: JSON, as bench/simulator/scenario.ts describes it.',
  ),
  busy: toggle('Those of busy-sites.json instead: millions of visits, some minutes.'),
  seed: integer(1, 1, 2 ** 32 - 1, 'Equal seeds give equal figures to the last digit'),
  puzzle: choice(PUZZLES, 'What all sites ask for'),
  beside: toggle(
    'Instead: both puzzles, with bases at which low phones wait as long; --base is that of hashwx.',
  ),
  speed: number(undefined, 0.01, 100, "How fast people's devices are; without it 1, p95 also for 1/2 and 2"),
  base: number(undefined, 16, 28, 'Bits of all sites, fractions too; without it, the default'),
  againstService: toggle('Instead: five minutes of requests to the built service, each decision compared.'),
  aims: toggle('Instead: what the policy is meant to do, beside what it does.'),
  json: toggle('One JSON line for each scenario and speed.'),
}

type EffectOptions = Values<typeof OPTIONS>

const DETAILS = `\
Columns: seconds to a token (p50, p95, p99) of all people; x1/2, x2: the p95 of devices half and twice as fast; gone: left without
a token; held: met a limit; bits: mean and highest of people's challenges; accepted: the attackers' tokens a minute; dollars: of the
attackers per 1,000 tokens, as processors + GPUs + addresses + bytes; work: attackers' processor time over ours; back: seconds after
the attack until people's bits are as before; others: what the attack adds to the bits and to the score of people, or only of those
who share the attackers' addresses, if somebody does. Work shows what a proof costs the attacker; p95 and p99 over p50 show how much
the luck of a search decides the wait.

Of --against-service, --aims and --beside the first counts; of --scenario, --only and --busy, too. --scenario, --only and --json go
with --beside, or with none of the three; back is null in JSON if people's bits stay high.`

const SERVICE_SECONDS = 300

export const EFFECT = tool({
  name: 'bench:effect',
  about:
    "What the policy costs attackers and people: simulated visits on a virtual clock, decided by the service's own rules.",
  options: OPTIONS,
  example: '--only flash-crowd',
  details: DETAILS,
  run,
})

async function tellDifferences(seed: number): Promise<number> {
  const { requests, limited, bits, differences } = await compareWithService(SERVICE_SECONDS, seed)
  for (const difference of differences) tell(difference)
  const counts = `${requests} requests, ${limited} refused, difficulties ${bits.join(' ')}`
  process.stdout.write(`${counts}: ${differences.length} decided differently\n`)
  return differences.length === 0 ? 0 : 1
}

function tellAims({ seed, speed = 1, base, puzzle }: EffectOptions): number {
  const run = (scenario: Scenario, index: number) => {
    tell(scenario.name)
    return simulate(scenario, { seed: seed + index, speed, puzzle })
  }
  process.stdout.write(`${aimTable(aimRows(run, puzzle, base))}\n`)
  return 0
}

/** The base of sha256 for which low phones hash as long as for this base of hashwx. */
function equalBase(base: number): number {
  const { medianMhs } = DEVICE_CLASSES.find(({ name }) => name === 'low phone')!
  return base + Math.log2(medianMhs.sha256 / medianMhs.hashwx)
}

function tellBeside(options: EffectOptions): number {
  const { base = BASE_BITS.hashwx, speed = 1 } = options
  const bases = { sha256: equalBase(base), hashwx: base }
  const results = chosen(options).flatMap(one =>
    PUZZLES.flatMap(puzzle => resultsOf({ ...one, base: bases[puzzle] }, { ...options, speed, puzzle })),
  )
  if (!options.json) process.stdout.write(`${table('', BESIDE_CELLS, results)}\n`)
  return 0
}

async function run(options: EffectOptions): Promise<number> {
  if (options.againstService) return tellDifferences(options.seed)
  if (options.aims) return tellAims(options)
  if (options.beside) return tellBeside(options)
  const rows = chosen(options).map(one => resultsOf({ ...one, base: options.base ?? one.base }, options))
  if (!options.json) process.stdout.write(`${table('', CELLS, rows)}\n`)
  return 0
}

/** Simulates at each speed: the table tells the figures of the first, and only the p95 of the others. */
function resultsOf(scenario: Scenario, { seed, json, puzzle, speed: only }: EffectOptions): Result[] {
  return (only === undefined ? [1, 0.5, 2] : [only]).map(speed => {
    const startedAtMs = performance.now()
    const result = simulate(scenario, { seed, speed, puzzle })
    const seconds = ((performance.now() - startedAtMs) / 1000).toFixed(1)
    tell(`${scenario.name}, x${speed}: ${result.measure.visits.length} visits in ${seconds} s`)
    const figures = { scenario: scenario.name, puzzle, base: scenario.base, speed, ...result.figures }
    if (json) process.stdout.write(`${JSON.stringify(figures)}\n`)
    return result
  })
}

function chosen({ scenario, only, busy }: EffectOptions): readonly Scenario[] {
  if (scenario !== undefined) return [scenarioOf(scenario)]
  if (only === undefined) return busy ? BUSY_SITES : SCENARIOS
  const all = [...SCENARIOS, ...BUSY_SITES]
  const names = only.split(',')
  for (const name of names)
    if (!all.some(known => known.name === name)) throw new ToolError(`--only: there is no scenario ${name}`)
  return all.filter(({ name }) => names.includes(name))
}

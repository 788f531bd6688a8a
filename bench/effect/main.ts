/** `npm run bench:effect`: what the policy costs attackers and people. See options.ts for what can be asked. */

import { writeFileSync } from 'node:fs'
import { ToolError, tell, tool } from '../../test/harness/command-line.ts'
import { reportHtml } from '../report/html.ts'
import { renderTable } from '../report/publish.ts'
import { compareWithService } from './against-service.ts'
import { AIM_COLUMNS, aimRows } from './aims.ts'
import { DETAILS, type EffectOptions, effectOptions, OPTIONS } from './options.ts'
import { type PolicyMaker, policyOf } from './policy.ts'
import { COLUMNS, cellsOf, type Row, reportOf } from './report.ts'
import { builtInScenarios, type Scenario, scenarioOf } from './scenario.ts'
import { Service } from './service.ts'
import { type Result, simulate } from './simulate.ts'

const TRACE_SECONDS = 300

export const EFFECT = tool({
  name: 'bench:effect',
  about:
    "What the policy costs attackers and people: simulated visits on a virtual clock, decided by the service's own rules.",
  options: OPTIONS,
  example: '--only flash-crowd --report page.html',
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

async function tellAims({ seed, speeds: [speed], base }: EffectOptions): Promise<number> {
  const rows = await aimRows((scenario, index) => {
    tell(scenario.name)
    return simulate(scenario, { seed: seed + index, speed: speed! })
  }, base)
  process.stdout.write(`${renderTable(AIM_COLUMNS, rows)}\n`)
  return 0
}

async function run(options: EffectOptions): Promise<number> {
  if (options.againstService) return check(options.seed)
  if (options.aims) return tellAims(options)
  const scenarios = chosen(options).map(scenario => ({ ...scenario, base: options.base ?? scenario.base }))
  const policies: Record<string, PolicyMaker> = { now: Service }
  if (options.before !== undefined) policies.before = await policyOf(options.before)
  const rows: Row[] = []
  for (const scenario of scenarios) {
    for (const policy of Object.keys(policies).sort()) {
      const results: Result[] = []
      for (const speed of options.speeds) {
        const startedAtMs = performance.now()
        const result = await simulate(scenario, { seed: options.seed, speed, policy: policies[policy] })
        results.push(result)
        const seconds = ((performance.now() - startedAtMs) / 1000).toFixed(1)
        tell(`${scenario.name}, ${policy}, x${speed}: ${result.measure.visits.length} visits in ${seconds} s`)
        if (options.json) tellLine({ scenario: scenario.name, policy, speed, ...result.figures })
      }
      rows.push({ policy, results })
    }
  }
  if (!options.json) process.stdout.write(`${renderTable(COLUMNS, rows.map(cellsOf))}\n`)
  if (options.report !== undefined) writeFileSync(options.report, reportHtml(reportOf(rows, options)))
  return 0
}

function tellLine(figures: object): void {
  process.stdout.write(`${JSON.stringify(figures)}\n`)
}

function chosen({ scenario, only }: EffectOptions): readonly Scenario[] {
  if (scenario !== undefined) return [scenarioOf(scenario)]
  const all = builtInScenarios()
  for (const name of only ?? [])
    if (!all.some(known => known.name === name)) throw new ToolError(`--only: there is no scenario ${name}`)
  return all.filter(({ name }) => only === undefined || only.includes(name))
}

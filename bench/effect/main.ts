/** `npm run bench:effect`: what the policy costs attackers and people. See options.ts for what can be asked. */

import { BenchError, runBench, tell } from '../support/arguments.ts'
import { writeReport } from '../support/html-report.ts'
import { renderTable } from '../support/table.ts'
import { type EffectOptions, HELP, parseOptions } from './options.ts'
import { COLUMNS, reportOf, rowOf } from './report.ts'
import { builtInScenarios, type Scenario, scenarioOf } from './scenario.ts'
import { type Result, simulate } from './simulate.ts'

await runBench(HELP, parseOptions, run)

async function run(options: EffectOptions): Promise<number> {
  const results: Result[] = []
  for (const scenario of chosen(options)) {
    const startedAtMs = performance.now()
    const result = await simulate(scenario, options)
    results.push(result)
    const seconds = ((performance.now() - startedAtMs) / 1000).toFixed(1)
    tell(`${scenario.name}: ${result.measure.visits.length} visits in ${seconds} s`)
    if (options.json)
      process.stdout.write(`${JSON.stringify({ scenario: scenario.name, ...result.figures })}\n`)
  }
  if (!options.json) process.stdout.write(`${renderTable(COLUMNS, results.map(rowOf))}\n`)
  if (options.report !== undefined) writeReport(options.report, reportOf(results, options))
  return 0
}

function chosen({ scenario, only }: EffectOptions): readonly Scenario[] {
  if (scenario !== undefined) return [scenarioOf(scenario)]
  const all = builtInScenarios()
  for (const name of only ?? [])
    if (!all.some(known => known.name === name)) throw new BenchError(`--only: there is no scenario ${name}`)
  return all.filter(({ name }) => only === undefined || only.includes(name))
}

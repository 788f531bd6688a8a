/** `npm run bench:store`: see options.ts for what it does and takes. */

import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import type { StoreKind } from '../../test/harness/service.ts'
import { BenchError, runBench, tell, UsageError } from '../support/arguments.ts'
import { writeReport } from '../support/html-report.ts'
import { runCosts, SWEPT_BATCHES, warmUp } from './costs.ts'
import { runExpiry } from './expiry.ts'
import { type Run, rowsOf } from './figures.ts'
import { runGrowth } from './growth.ts'
import { runMemory } from './memory.ts'
import { stopSubjects } from './open-subject.ts'
import { HELP, type Options, type Part, parseOptions } from './options.ts'
import { pageOf } from './page.ts'
import { jsonText, progressLine, reportOf, reportText } from './report.ts'

async function main(options: Options): Promise<number> {
  if (!existsSync('/proc/self/stat')) throw new UsageError('CPU time is read from /proc, so this needs Linux')
  if (options.stores.includes('redis') && spawnSync('redis-server', ['--version']).status !== 0) {
    throw new UsageError('--store redis: there is no redis-server on the path')
  }
  let isInterrupted = false
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => {
      isInterrupted = true
      void stopSubjects().finally(() => process.exit(1))
    })
  }
  const runs = await runAll(options).catch(error => {
    // After a signal it is only that the stores have gone.
    throw isInterrupted ? new BenchError('stopped before the end') : error
  })
  const report = reportOf(rowsOf(runs), options)
  process.stdout.write(`${options.isJson ? jsonText(report) : reportText(report)}\n`)
  if (options.reportFile !== undefined) writeReport(options.reportFile, pageOf(report))
  return 0
}

/** All parts in each repetition, so that what is slow for a while is so for all of them. */
async function runAll(options: Options): Promise<Run[]> {
  for (const store of options.stores) await warmUp(store, options)
  const runs: Run[] = []
  for (let repetition = 1; repetition <= options.repeat; repetition++) {
    for (const part of options.parts) {
      for (const store of options.stores) {
        const ofPart = await RUNNERS[part](store, options)
        for (const run of ofPart) tell(`${repetition}/${options.repeat} ${progressLine(run)}`)
        runs.push(...ofPart)
      }
    }
  }
  return runs
}

const RUNNERS: Readonly<Record<Part, (store: StoreKind, options: Options) => Promise<Run[]>>> = {
  costs: (store, options) => runCosts('costs', store, options, options.batch),
  batches: async (store, options) => {
    const runs: Run[] = []
    for (const batch of SWEPT_BATCHES) runs.push(...(await runCosts('batches', store, options, batch)))
    return runs
  },
  memory: runMemory,
  expiry: runExpiry,
  growth: (store, options) => runGrowth(store, options, tell),
}

await runBench(HELP, parseOptions, main)

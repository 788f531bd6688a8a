/** `npm run bench:http`: see options.ts for what it does and takes. */

import { existsSync } from 'node:fs'
import { runBench, tell, UsageError } from '../support/arguments.ts'
import { writeReport } from '../support/html-report.ts'
import { Bench } from './cases.ts'
import { LoadProcess } from './load-process.ts'
import { HELP, type Options, parseOptions } from './options.ts'
import { jsonText, latencyProgressLine, progressLine, reportCases, reportLatencies } from './report.ts'
import { pageOf, tablesText } from './tables.ts'

const BUILT = new URL('../../dist/main.js', import.meta.url)

async function bench(options: Options): Promise<number> {
  if (!existsSync('/proc/self/stat')) throw new UsageError('CPU time is read from /proc, so this needs Linux')
  if (!existsSync(BUILT)) throw new UsageError('the service is not built: npm run -s build')
  const load = new LoadProcess()
  const bench = new Bench(options, load, {
    onRun: run => tell(progressLine(run)),
    onLatencyRun: run => tell(latencyProgressLine(run)),
  })
  const stop = async () => {
    load.stop()
    await bench.stop()
  }
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => void stop().finally(() => process.exit(1)))
  }
  try {
    const { runs, latencyRuns } = await bench.runAll()
    const cases = reportCases(runs)
    const latencies = reportLatencies(latencyRuns)
    const print = options.isJson ? jsonText : tablesText
    process.stdout.write(`${print(cases, latencies, options)}\n`)
    if (options.reportFile !== undefined) writeReport(options.reportFile, pageOf(cases, latencies, options))
    return [...cases, ...latencies].every(({ isOk }) => isOk) ? 0 : 1
  } finally {
    await stop()
  }
}

await runBench(HELP, parseOptions, bench)

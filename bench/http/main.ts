/** `npm run bench:http`. */

import { existsSync } from 'node:fs'
import { tell, tool, UsageError } from '../../test/harness/command-line.ts'
import { LoadProcess } from '../../test/harness/load/load-process.ts'
import { stopOnSignal } from '../../test/harness/processes.ts'
import { publish } from '../report/publish.ts'
import { Bench, OPTIONS, type Options } from './cases.ts'
import { latencyProgressLine, progressLine, reportCases, reportLatencies, reportOf } from './report.ts'

export const HTTP = tool({
  name: 'bench:http',
  about: `Measures the service over HTTP on loopback: CPU time per request of all its processes, with one worker, and of Redis,
beside a bare uWebSockets.js server that reads the bodies of the same requests and answers with as many bytes: at full
load (a closed loop). Then latencies of the same servers at a fixed rate, counted from when each request was due (an open loop).`,
  options: OPTIONS,
  example: '--endpoint verify --repeat 9 --report page.html',
  details: 'Ends with code 1 if any answer was not the expected one.',
  run: bench,
})

const BUILT = new URL('../../dist/main.js', import.meta.url)

async function bench(options: Options): Promise<number> {
  if (!existsSync('/proc/self/stat')) throw new UsageError('CPU time is read from /proc, so this needs Linux')
  if (!existsSync(BUILT)) throw new UsageError('the service is not built: npm run -s build')
  const load = new LoadProcess()
  const bench = new Bench(options, load, {
    onRun: run => tell(progressLine(run)),
    onLatencyRun: run => tell(latencyProgressLine(run)),
  })
  stopOnSignal()
  try {
    const { runs, latencyRuns } = await bench.runAll()
    const cases = reportCases(runs)
    const latencies = reportLatencies(latencyRuns)
    const figures = { node: process.version, options, cases, latencies }
    publish(reportOf(cases, latencies, options), figures, options)
    return [...cases, ...latencies].every(({ isOk }) => isOk) ? 0 : 1
  } finally {
    load.stop()
  }
}

/** `npm run bench:scale`: see options.ts for what it does and takes. */

import { existsSync } from 'node:fs'
import { LoadProcess } from '../http/load-process.ts'
import { ServerSlot } from '../http/server-slot.ts'
import { runBench, tell, UsageError } from '../support/arguments.ts'
import { writeReport } from '../support/html-report.ts'
import { type Measured, measurePoint } from './measure.ts'
import { HELP, type Options, parseOptions } from './options.ts'
import { type Series, seriesOf } from './points.ts'
import { jsonText, progressLine, reportSeries, type SeriesReport } from './report.ts'
import { pageOf, tablesText } from './tables.ts'

const BUILT = new URL('../../dist/main.js', import.meta.url)

async function bench(options: Options): Promise<number> {
  if (!existsSync('/proc/self/stat')) throw new UsageError('CPU time is read from /proc, so this needs Linux')
  if (!existsSync(BUILT)) throw new UsageError('the service is not built: npm run -s build')
  const load = new LoadProcess()
  const slot = new ServerSlot()
  const stop = async () => {
    load.stop()
    await slot.end()
  }
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => void stop().finally(() => process.exit(1)))
  }
  try {
    const all = await measureAll(options, load, slot)
    process.stdout.write(`${options.isJson ? jsonText(all, options) : tablesText(all, options)}\n`)
    if (options.reportFile !== undefined) writeReport(options.reportFile, pageOf(all, options))
    return all.every(({ points }) => points.every(({ isOk }) => isOk)) ? 0 : 1
  } finally {
    await stop()
  }
}

/** Turn by turn: the speed of a shared machine drifts, so that only what is measured in one turn can be compared. */
async function measureAll(options: Options, load: LoadProcess, slot: ServerSlot): Promise<SeriesReport[]> {
  const turnsOf = new Map<Series, Measured[][]>(seriesOf(options).map(series => [series, []]))
  for (let turn = 0; turn < options.repeat; turn++) {
    for (const [series, turns] of turnsOf) {
      const measured: Measured[] = []
      for (const point of series.points) {
        const one = await measurePoint(series.endpoint, point, { options, load, slot })
        tell(progressLine(series, point, one))
        measured.push(one)
      }
      turns.push(measured)
    }
  }
  return [...turnsOf].map(([series, turns]) => reportSeries(series, turns))
}

await runBench(HELP, parseOptions, bench)

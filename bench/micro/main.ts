/** `npm run bench`: see options.ts for what it does and takes. */

import { availableParallelism, cpus, loadavg } from 'node:os'
import { runBench, tell } from '../support/arguments.ts'
import { writeReport } from '../support/html-report.ts'
import { installPeers, wantedVersions } from '../support/peers.ts'
import { HELP, type Options, parseOptions } from './options.ts'
import { pageOf } from './page.ts'
import { Processes } from './processes.ts'
import { aimsOf, type MicroReport, rowOf, type Surroundings } from './report.ts'
import { measureAll, type Run } from './runs.ts'
import { reportText } from './tables.ts'

async function main(options: Options): Promise<number> {
  const hasPeers = options.hasPeers && options.cases.some(({ peers = [] }) => peers.length > 0)
  if (hasPeers) installPeers(tell)
  const surroundings = surroundingsOf(hasPeers)
  const rows = (await bench(options)).map(rowOf)
  const { repeat, milliseconds } = options
  const report: MicroReport = { surroundings, repeat, milliseconds, rows, aims: aimsOf(rows) }
  process.stdout.write(`${options.isJson ? JSON.stringify(report, undefined, 2) : reportText(report)}\n`)
  if (options.reportFile !== undefined) writeReport(options.reportFile, pageOf(report))
  return 0
}

async function bench(options: Options): Promise<Run[]> {
  const processes = new Processes()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => {
      processes.stop()
      process.exit(1)
    })
  }
  try {
    return await measureAll(options, (...one) => processes.measure(...one), tell)
  } finally {
    processes.stop()
  }
}

function surroundingsOf(hasPeers: boolean): Surroundings {
  const measured = ['altcha-lib', '@cap.js/server']
  const versions = Object.entries(wantedVersions()).filter(([name]) => hasPeers && measured.includes(name))
  return {
    cpu: cpus()[0]!.model,
    cores: availableParallelism(),
    node: process.versions.node,
    openssl: process.versions.openssl,
    loadAverage: loadavg()[0]!,
    peers: Object.fromEntries(versions),
  }
}

await runBench(HELP, parseOptions, main)

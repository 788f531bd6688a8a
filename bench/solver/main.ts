/** `npm run bench:solver`: see options.ts for what it does and takes. */

import { writeFileSync } from 'node:fs'
import { availableParallelism, cpus, loadavg } from 'node:os'
import { launchBrowser } from '../../test/harness/browser.ts'
import { runBench, tell } from '../support/arguments.ts'
import { writeReport } from '../support/html-report.ts'
import { installPeers, wantedVersions } from '../support/peers.ts'
import { HELP, type Options, parseOptions } from './options.ts'
import { pageOf } from './page.ts'
import { type Report, reportOf, reportText } from './report.ts'
import { checkAll, measureRates, measureSolves, widgetThreads } from './runs.ts'
import { startSite } from './site.ts'

async function main(options: Options): Promise<number> {
  installPeers(tell)
  const report = await bench(options)
  if (options.jsonFile !== undefined) {
    writeFileSync(options.jsonFile, `${JSON.stringify(report, undefined, 2)}\n`)
  }
  if (options.reportFile !== undefined) writeReport(options.reportFile, pageOf(report))
  process.stdout.write(`${reportText(report)}\n`)
  return 0
}

async function bench(options: Options): Promise<Report> {
  const loadAverage = loadavg()[0]!
  const site = await startSite()
  const browser = await launchBrowser().catch(async error => {
    await site.stop()
    throw error
  })
  try {
    const page = await browser.newPage()
    await page.goto(site.origin())
    await page.waitForFunction(() => 'bench' in globalThis)
    const threads = await widgetThreads(page)
    await checkAll(page, options.contenders)
    tell('all solvers find the right counters')
    const rates = await measureRates(page, options, threads === 1 ? [1] : [1, threads], tell)
    const isOursWanted = options.contenders.includes('simd')
    const solves = isOursWanted ? await measureSolves(page, options, threads, tell) : []
    const surroundings = {
      cpu: cpus()[0]!.model,
      cores: availableParallelism(),
      chromium: browser.version(),
      loadAverage,
      peers: wantedVersions(),
    }
    return reportOf(surroundings, options, rates, solves)
  } finally {
    await browser.close()
    await site.stop()
  }
}

await runBench(HELP, parseOptions, main)

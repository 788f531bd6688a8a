/** `npm run bench:capacity`: see options.ts for what it does and takes. */

import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { BenchError, runBench, tell, UsageError } from '../support/arguments.ts'
import { writeReport } from '../support/html-report.ts'
import { readMeasurements } from './inputs.ts'
import { ASSUMED, capacityOf } from './model.ts'
import { nativeBlocksPerSecond } from './native.ts'
import { HELP, type Options, parseOptions, type Source } from './options.ts'
import { type CapacityPage, END_MARKER, pageMarkdown, pageReport, START_MARKER, withPage } from './page.ts'
import { runBenches } from './runs.ts'

async function main(options: Options): Promise<number> {
  // Before anything is measured: minutes would be lost to a file without markers.
  if (options.writeFile !== undefined) replaced(options.writeFile, '')
  const page = await computed(options)
  const { isJson, reportFile, writeFile } = options
  const markdown = pageMarkdown(page)
  if (writeFile !== undefined) writeFileSync(writeFile, replaced(writeFile, markdown))
  if (isJson) process.stdout.write(`${JSON.stringify(page, undefined, 2)}\n`)
  else if (writeFile === undefined) process.stdout.write(`${markdown}\n`)
  if (reportFile !== undefined) writeReport(reportFile, pageReport(page))
  return 0
}

/** The text of a file with the page in its place. Throws UsageError if it has none. */
function replaced(file: string, markdown: string): string {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    throw new UsageError(`--write: cannot read ${file}: ${(error as NodeJS.ErrnoException).code}`)
  }
  const result = withPage(text, markdown)
  if (result === undefined)
    throw new UsageError(`--write: ${file} has not once "${START_MARKER}", then "${END_MARKER}"`)
  return result
}

async function computed(options: Options): Promise<CapacityPage> {
  if (Object.keys(options.files).length > 0) return await pageOf(options.files, options.pricePerHour)
  const stopping = new AbortController()
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(name, () => stopping.abort(new BenchError('stopped before the end')))
  }
  const { files, remove } = await runBenches(stopping.signal, tell)
  try {
    return await pageOf(files, options.pricePerHour)
  } finally {
    remove()
  }
}

async function pageOf(files: Options['files'], pricePerHour: number): Promise<CapacityPage> {
  const measured = readMeasurements(files)
  tell('openssl speed')
  const native = await nativeBlocksPerSecond()
  const measurements = { ...measured, ...(native !== undefined && { nativeBlocksPerSecond: native }) }
  const assumptions = { ...ASSUMED, pricePerHour }
  const surroundings = {
    cpu: cpus()[0]?.model ?? 'unknown CPU',
    node: process.version,
    date: new Date().toISOString().slice(0, 10),
    sources: Object.entries(files).map(([source, file]) => sourceLine(source as Source, file)),
  }
  return { surroundings, assumptions, measurements, capacity: capacityOf(measurements, assumptions) }
}

const BENCHES: Readonly<Record<Source, string>> = {
  http: 'bench:http',
  micro: 'bench',
  solver: 'bench:solver',
  store: 'bench:store',
}

/** When a bench was run, and on what, as far as its figures tell: not all of them need be of one machine. */
function sourceLine(source: Source, file: string): string {
  const day = statSync(file).mtime.toISOString().slice(0, 10)
  const { surroundings, node } = JSON.parse(readFileSync(file, 'utf8'))
  const on = [surroundings?.cpu, surroundings?.node ?? node].filter(text => typeof text === 'string')
  return [`\`${BENCHES[source]}\` of ${day}`, ...on].join(', ')
}

await runBench(HELP, parseOptions, main)

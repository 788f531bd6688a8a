/** `npm run bench:capacity`: reads the figures of the other benches, or runs them in short if there are none. */

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, openSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  number,
  ToolError,
  tell,
  text,
  tool,
  UsageError,
  type Values,
} from '../../test/harness/command-line.ts'
import { build, THIS_TREE } from '../compare/tree.ts'
import { OUTPUT, publish } from '../report/publish.ts'
import { machine } from '../report/report.ts'
import { readMeasurements, SOURCES, type Source } from './inputs.ts'
import { ASSUMED, capacityOf } from './model.ts'
import { type CapacityPage, END_MARKER, markdownOf, reportOf, START_MARKER, withPage } from './page.ts'

const OPTIONS = {
  http: text('FILE', 'Figures of npm run -s bench:http -- --json.'),
  solver: text('FILE', 'Figures of npm run -s bench:solver -- --json.'),
  store: text('FILE', 'Figures of npm run -s bench:store -- --json.'),
  micro: text('FILE', 'Figures of npm run -s bench -- --json.'),
  price: number(0.04, 1e-9, 1e6, 'Of a core for an hour, in any unit of currency'),
  write: text('FILE', 'Puts the page into a file, between the markers that are there.'),
  ...OUTPUT,
}

export const CAPACITY = tool({
  name: 'bench:capacity',
  about: `Computes what a load takes and what an attack costs, from measured figures only: cores of workers and Redis, memory,
CPU time and money for a million verifications, and the CPU time of an attacker against ours at each difficulty.`,
  options: OPTIONS,
  example: '--http http.json --solver solver.json',
  details: `\
Without any file it runs the first three itself, for some minutes. With files, what was not given is left out, but for
--http, which is needed. The native hash rate is a published one (bench/effect/prices.json).`,
  run: main,
})

type Files = Readonly<Partial<Record<Source, string>>>

async function main(options: Values<typeof OPTIONS>): Promise<number> {
  const { write: file, price } = options
  const given = SOURCES.flatMap(source => (options[source] === undefined ? [] : [[source, options[source]]]))
  if (given.length > 0 && options.http === undefined) {
    throw new UsageError('--http: expected a file too, since all else is computed from it')
  }
  // Before anything is measured: minutes would be lost to a file without markers.
  if (file !== undefined) replaced(file, '')
  const page = given.length > 0 ? await pageOf(Object.fromEntries(given), price) : await measuredPage(price)
  if (file !== undefined) writeFileSync(file, replaced(file, markdownOf(page)))
  publish(reportOf(page), page, options)
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

const RUNS: readonly (readonly [source: Source, args: readonly string[]])[] = [
  ['http', ['--repeat', '5', '--seconds', '1', '--json']],
  ['store', ['--store', 'redis', '--only', 'memory', '--max-addresses', '100000', '--json']],
  ['solver', ['--filter', 'WASM SIMD', '--json']],
]
/** Without it there is nothing to compute. */
const NEEDED: Source = 'http'

/** Runs the benches in a folder for their figures, which is removed at the end. */
async function measuredPage(pricePerHour: number): Promise<CapacityPage> {
  const stopping = new AbortController()
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(name, () => stopping.abort(new ToolError('stopped before the end')))
  }
  const folder = mkdtempSync(join(tmpdir(), 'powgate-capacity-'))
  try {
    tell('building')
    await build(THIS_TREE, stopping.signal)
    const files: Partial<Record<Source, string>> = {}
    for (const [source, args] of RUNS) {
      const file = join(folder, `${source}.json`)
      tell(`bench/${source}: ${args.join(' ')}`)
      const code = await runBench([source, ...args], file, stopping.signal)
      stopping.signal.throwIfAborted()
      if (code === 0) files[source] = file
      else if (source === NEEDED) throw new Error(`bench/${source} ended with ${code}`)
      else tell(`bench/${source} ended with ${code}: left out`)
    }
    return await pageOf(files, pricePerHour)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** @returns its exit code */
async function runBench(args: readonly string[], file: string, signal: AbortSignal): Promise<number | null> {
  const command = ['--import', 'tsx', join(THIS_TREE, 'bench/cli.ts'), ...args]
  const child = spawn(process.execPath, command, {
    cwd: THIS_TREE,
    stdio: ['ignore', openSync(file, 'w'), 'inherit'],
  })
  const end = () => child.kill('SIGTERM')
  signal.addEventListener('abort', end, { once: true })
  const [code] = await once(child, 'close')
  signal.removeEventListener('abort', end)
  return code
}

async function pageOf(files: Files, pricePerHour: number): Promise<CapacityPage> {
  const measurements = readMeasurements(files)
  const assumptions = { ...ASSUMED, pricePerHour }
  const surroundings = {
    cpu: machine().cpu,
    node: process.version,
    date: new Date().toISOString().slice(0, 10),
    sources: Object.entries(files).map(([source, file]) => sourceLine(source as Source, file)),
  }
  return { surroundings, assumptions, measurements, capacity: capacityOf(measurements, assumptions) }
}

/** When a bench was run, and on what, as far as its figures tell: not all of them need be of one machine. */
function sourceLine(source: Source, file: string): string {
  const bench = source === 'micro' ? 'bench' : `bench:${source}`
  const day = statSync(file).mtime.toISOString().slice(0, 10)
  const { surroundings, node } = JSON.parse(readFileSync(file, 'utf8'))
  const on = [surroundings?.cpu, surroundings?.node ?? node].filter(known => typeof known === 'string')
  return [`\`${bench}\` of ${day}`, ...on].join(', ')
}

/**
 * `npm run bench:solver -- --slow`: from the navigation to the token, with a widget, a service and a Chromium that has a share
 * of one core. A cgroup's quota limits all processes of the browser together. The throttling of DevTools binds no workers.
 */

import { existsSync, mkdirSync, rmdirSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import type { Browser, Page } from 'playwright-core'
import type { PuzzleName } from '../../src/protocol/proof.ts'
import { launchBrowser, openPage } from '../../test/harness/browser.ts'
import { ToolError, tell } from '../../test/harness/command-line.ts'
import { eventually, within } from '../../test/harness/eventually.ts'
import { spreadOf } from '../../test/harness/measure.ts'
import { childPids } from '../../test/harness/processes.ts'
import { UNLIMITED } from '../../test/harness/service.ts'
import { formPage, startSurroundings } from '../../test/harness/widget.ts'
import { disturbanceNote, measured } from '../disturbance.ts'
import { type Cell, left, machine, reportText, right, table, text } from '../report/report.ts'

const PUZZLES_BITS: readonly Puzzle[] = [
  ...[16, 18, 20, 22].map((bits): Puzzle => ['sha256', bits]),
  ...[16, 17, 18].map((bits): Puzzle => ['hashwx', bits]),
]
export const SLOW = { shares: [1, 1 / 4, 1 / 16], puzzles: PUZZLES_BITS, runs: 9 }
export const SLOW_QUICK: typeof SLOW = { shares: [1 / 4], puzzles: [['hashwx', 16]], runs: 1 }

type Puzzle = readonly [puzzle: PuzzleName, bits: number]

interface Run {
  /** Time from the navigation to the token. */
  readonly tokenMs: number
  /** Time from the challenge to its counter. */
  readonly solveTimeMs: number
  /** The longest task of the page's main thread. */
  readonly longestTaskMs: number
}

interface SlowRow {
  /** The share of one core. */
  readonly cores: number
  readonly puzzle: PuzzleName
  readonly difficulty: number
  readonly runs: readonly Run[]
  readonly othersBusy: number | undefined
}

/** Short, since a browser that has used its share stands still until the period ends. 1 ms is the least quota. */
const PERIOD_US = 16_000
const RUN_MS_MAX = 120_000
const SETTLE_MS = 500
const ALL_CORES = availableParallelism()
/** Where version 1 of cgroups has this controller, and version 2 all. */
const [V1, V2] = ['/sys/fs/cgroup/cpu', '/sys/fs/cgroup']

class CpuGroup {
  readonly #folder = `${existsSync(V1) ? V1 : V2}/powgate-bench-${process.pid}`

  constructor() {
    try {
      mkdirSync(this.#folder)
      this.limit(ALL_CORES)
    } catch (error) {
      this.tryRemove()
      const needs = '--slow needs root, and cgroups with the controller cpu'
      throw new ToolError(`${needs}: ${(error as Error).message}`)
    }
  }

  limit(cores: number): void {
    const quotaUs = Math.round(cores * PERIOD_US)
    if (!existsSync(V1)) return this.#write('cpu.max', `${quotaUs} ${PERIOD_US}`)
    this.#write('cpu.cfs_period_us', PERIOD_US)
    this.#write('cpu.cfs_quota_us', quotaUs)
  }

  /** Adds a process with its descendants. The system adds those that it starts later. */
  add(pid: number): void {
    this.#write('cgroup.procs', pid)
    for (const child of childPids(pid)) this.add(child)
  }

  /** Removes it, unless a process is left. @returns whether it is removed */
  tryRemove(): boolean {
    try {
      rmdirSync(this.#folder)
      return true
    } catch {
      return false
    }
  }

  #write(file: string, value: number | string): void {
    writeFileSync(`${this.#folder}/${file}`, String(value))
  }
}

export async function measureSlow(what: typeof SLOW): Promise<SlowRow[]> {
  const group = new CpuGroup()
  try {
    return await measureIn(group, what)
  } finally {
    await eventually(10_000, 'the browser has ended', () => group.tryRemove())
  }
}

async function measureIn(group: CpuGroup, { shares, puzzles, runs }: typeof SLOW): Promise<SlowRow[]> {
  const { service, gateway, pages } = await startSurroundings(UNLIMITED)
  let launched: Browser | undefined
  try {
    const before = childPids(process.pid)
    const browser = await launchBrowser()
    launched = browser
    for (const pid of childPids(process.pid)) if (!before.includes(pid)) group.add(pid)
    for (const [puzzle, bits] of puzzles) {
      const difficulty = { base: bits, min: bits, max: bits }
      const { siteKey } = await service.createSite({ puzzle, difficulty })
      const script = `<script>${PAGE_SCRIPT}</script><script src="${gateway.origin()}/widget.js"></script>`
      pages.add(`/${puzzle}/${bits}`, formPage(`site-key="${siteKey}"`, { script }))
    }
    const rows: SlowRow[] = []
    for (const cores of shares) {
      for (const [puzzle, difficulty] of puzzles) {
        const url = `${pages.origin()}/${puzzle}/${difficulty}`
        const { value, othersBusy } = await measured(() => runsOf(browser, url, runs, group, cores))
        rows.push({ cores, puzzle, difficulty, runs: value, othersBusy })
        tell(`${cores} of a core: ${runs} tokens at ${difficulty} bits of ${puzzle}`)
      }
    }
    return rows
  } finally {
    group.limit(ALL_CORES)
    await launched?.close()
    for (const server of [pages, gateway, service]) await server.stop()
  }
}

/** Runs in the page before the widget: notes the longest task, and promises the times of the token. */
const PAGE_SCRIPT = `window.longestTaskMs = 0 // if none took 50 ms
new PerformanceObserver(list => {
  for (const { duration } of list.getEntries()) longestTaskMs = Math.max(longestTaskMs, duration)
}).observe({ type: 'longtask', buffered: true })
window.verified = new Promise((resolve, reject) => {
  const gate = document.querySelector('pow-gate')
  gate.addEventListener('verified', ({ detail: { solveTimeMs } }) => resolve({ tokenMs: performance.now(), solveTimeMs }))
  gate.addEventListener('failed', ({ detail }) => reject(new Error(detail.message)))
})`

/** Loads the page again and again, each time in a new window, which opens without a limit: people have one open. */
async function runsOf(browser: Browser, url: string, count: number, group: CpuGroup, cores: number) {
  const runs: Run[] = []
  while (runs.length < count) {
    group.limit(ALL_CORES)
    const prepare = async (page: Page) => page.setDefaultTimeout(RUN_MS_MAX)
    const visit = await openPage(browser, 'about:blank', { prepare })
    await visit.page.waitForTimeout(SETTLE_MS)
    group.limit(cores)
    await visit.page.goto(url)
    const verified = visit.page.evaluate('verified') as Promise<Omit<Run, 'longestTaskMs'>>
    const run = await within(RUN_MS_MAX, verified, () => `a token of ${url}`)
    runs.push({ ...run, longestTaskMs: await visit.page.evaluate<number>('longestTaskMs') })
    group.limit(ALL_CORES)
    await visit.close()
  }
  return runs
}

export function slowReport(rows: readonly SlowRow[]): string {
  const { cpu, loadAverage } = machine()
  const spread = (name: keyof Run, scale: number, digits: number) => (row: SlowRow) =>
    text(spreadOf(row.runs.map(run => run[name] / scale)), digits)
  const cells: Cell<SlowRow>[] = [
    [right('cores'), ({ cores }) => (cores === 1 ? '1' : `1/${1 / cores}`)],
    [left('puzzle'), ({ puzzle }) => puzzle],
    [right('bits'), ({ difficulty }) => String(difficulty)],
    [right('pages'), ({ runs }) => String(runs.length)],
    [right('token, s'), spread('tokenMs', 1000, 2)],
    [right('solver, s'), spread('solveTimeMs', 1000, 2)],
    [right('longest task, ms'), spread('longestTaskMs', 1, 0)],
    [left('notes'), ({ othersBusy }) => disturbanceNote(othersBusy)],
  ]
  const legend = `${cpu}; load average at the end ${loadAverage.toFixed(1)}. Median (range) of pages, each in a new profile, in a Chromium
whose processes together have a cgroup's quota every ${PERIOD_US / 1000} ms. Solver: from the challenge to its counter. The longest task is
that of the page's main thread, its load included.`
  return reportText([table('From the navigation to the token', cells, rows), legend])
}

/** The repetitions of each case as medians and ranges, and these as tables beside their budgets. */

import type { StoreKind } from '../../test/harness/service.ts'
import { disturbanceNote } from '../disturbance.ts'
import {
  type Aim,
  aimsText,
  type Cell,
  figure,
  grouped,
  left,
  percent,
  rangeNote,
  reportText,
  right,
  type Spreads,
  spreadsOf,
  table,
  text,
} from '../report/report.ts'
import type { AnyFigures, Run } from './figures.ts'
import type { Options } from './options.ts'
import { CONNECTIONS } from './prebuilt.ts'
import type { Endpoint } from './traffic.ts'

/** CPU time that the bare server needs for a request on the core for which the budgets `redisUs` are stated; `budgetOf` scales them. */
const BARE_US = 7.5
/** CPU budgets of a request, with 64 connections and a new address for each. */
interface Budget {
  /** The service's CPU time over the bare server's, on each store. */
  readonly timesBare: Readonly<Record<StoreKind, number>>
  /** CPU time of Redis, in microseconds. */
  readonly redisUs: number
}

const BUDGETS: Readonly<Record<Endpoint, Budget>> = {
  challenge: { timesBare: { redis: 3.1, embedded: 2.9 }, redisUs: 7 },
  verify: { timesBare: { redis: 3.7, embedded: 3.9 }, redisUs: 11.5 },
  'verify-token': { timesBare: { redis: 3.7, embedded: 3.5 }, redisUs: 9 },
}

/** All repetitions of one case. */
export interface Row extends Pick<Run, 'endpoint' | 'server' | 'busy'> {
  readonly isOk: boolean
  /** Reasons to trust the figures less, or not at all. */
  readonly notes: readonly string[]
  readonly figures: Spreads<AnyFigures>
}

/** Below this the worker waited for load, and its figures include waking up for it. */
const BUSY_MIN = 0.8
/** A generator whose event loop is later than this was held up, or had too much to do. */
const GENERATOR_LATE_MS_MAX = 5

export function rowsOf(runs: readonly Run[]): Row[] {
  return grouped(runs, ({ endpoint, server, busy }) => `${endpoint} ${server} ${busy}`).map(same => {
    const { endpoint, server, busy } = same[0]!
    const figures = spreadsOf(same.flatMap(run => run.figures ?? []))
    const { workerBusy, cpuUs, othersBusy, generatorLateP99Ms } = figures
    const failure = same.find(run => run.failure !== undefined)?.failure
    const isIdle = busy === undefined && workerBusy !== undefined && workerBusy.median < BUSY_MIN
    // The worst repetition counts: one in which the generator lagged spoils what it is compared with.
    const lateMs = generatorLateP99Ms?.max ?? 0
    const notes = [
      failure === undefined ? '' : `FAILED: ${failure}`,
      disturbanceNote(othersBusy?.median),
      ...new Set(same.flatMap(run => run.notes ?? [])),
      isIdle ? 'worker not busy' : '',
      cpuUs === undefined ? '' : rangeNote(cpuUs),
      lateMs > GENERATOR_LATE_MS_MAX ? `the generator lagged (99%: ${lateMs.toFixed(1)} ms)` : '',
    ]
    return { endpoint, server, busy, isOk: failure === undefined, notes: notes.filter(Boolean), figures }
  })
}

/** One line for each run, while people wait. */
export function progressLine({ endpoint, server, figures, failure }: Run): string {
  const name = `${endpoint} on ${server}`
  if (figures === undefined) return `${name}: FAILED: ${failure}`
  const shown = SHOWN.flatMap(key => (figures[key] === undefined ? [] : `${key} ${figures[key].toFixed(2)}`))
  return `${name}: ${shown.join(', ')}`
}

const SHOWN = [
  'requestsPerSecond',
  'wantedPerSecond',
  'workerBusy',
  'latencyP50Ms',
  'latencyP99Ms',
  'cpuUs',
  'timesBare',
] as const

/** What a case may cost: against the bare server, and Redis on a core as fast as this one; undefined where there is no budget. */
function budgetOf({ endpoint, server }: Row, name: keyof Budget, rows: readonly Row[]) {
  if (server === 'bare' || (name === 'redisUs' && server !== 'redis')) return undefined
  if (name === 'timesBare') return BUDGETS[endpoint].timesBare[server]
  const bare = rows.find(one => one.endpoint === endpoint && one.server === 'bare')?.figures.cpuUs
  return bare && (BUDGETS[endpoint].redisUs * bare.median) / BARE_US
}

/** With the worker so busy, in per cent, ... */
const TAIL_BUSY = 50
/** ... the p99 may lie this far above that of the bare server at the same rate. */
const TAIL_MS_MAX = 5

export function aimsOf(rows: readonly Row[]): Aim[] {
  const words = { timesBare: "times the bare server's CPU time", redisUs: "us of Redis' CPU time" }
  return rows.flatMap((row): Aim[] => {
    const { endpoint, server, busy, figures } = row
    const { latencyP99Ms, bareP99Ms } = figures
    const budgets = (['timesBare', 'redisUs'] as const).flatMap((name): Aim[] => {
      const [spent, budget] = [figures[name], budgetOf(row, name, rows)]
      if (spent === undefined || budget === undefined) return []
      const about = `/${endpoint} on ${server}: ${words[name]} at most ${budget.toFixed(1)}`
      return [{ about, isMet: spent.median <= budget, found: text(spent, 2) }]
    })
    // Rows at a fixed rate have no CPU time of a request, and so no budgets.
    if (busy !== TAIL_BUSY || latencyP99Ms === undefined || bareP99Ms === undefined) return budgets
    const aboveMs = latencyP99Ms.median - bareP99Ms.median
    const what = `p99 at most ${TAIL_MS_MAX} ms above the bare server's`
    const about = `/${endpoint} on ${server}, worker ${busy}% busy: ${what}`
    return [{ about, isMet: aboveMs <= TAIL_MS_MAX, found: `${aboveMs.toFixed(1)} ms` }]
  })
}

const ENDPOINT: Cell<Row> = [left('endpoint'), ({ endpoint }) => endpoint]
const SERVER: Cell<Row> = [left('server'), ({ server }) => server]
const NOTES: Cell<Row> = [left('notes'), ({ notes }) => notes.join('; ')]
const BUSY: Cell<Row> = [
  right('busy'),
  ({ figures: { workerBusy } }) => (workerBusy === undefined ? '-' : percent(workerBusy.median)),
]

function loadTable(rows: readonly Row[]): string {
  const budget = (name: keyof Budget, digits: number): Cell<Row> => {
    const words = (row: Row) => {
      const [spent, most] = [row.figures[name], budgetOf(row, name, rows)]
      if (most === undefined) return ''
      return `${spent !== undefined && spent.median > most ? 'OVER ' : ''}${most.toFixed(digits)}`
    }
    return [right('budget'), words]
  }
  const cells = [
    ENDPOINT,
    SERVER,
    figure('CPU us/request', 'cpuUs', 2),
    figure('x bare', 'timesBare', 2),
    budget('timesBare', 1),
    figure('Redis us/request', 'redisUs', 2),
    budget('redisUs', 2),
    figure('requests/s', 'requestsPerSecond', 0),
    BUSY,
    figure('p50 ms', 'latencyP50Ms', 2),
    figure('p99 ms', 'latencyP99Ms', 2),
    NOTES,
  ]
  return table('At full load', cells, rows)
}

const LATENCY_CELLS = [
  ENDPOINT,
  SERVER,
  BUSY,
  figure('requests/s', 'wantedPerSecond', 0),
  figure('p50 ms', 'latencyP50Ms', 2),
  figure('p99 ms', 'latencyP99Ms', 2),
  figure('p99.9 ms', 'latencyP999Ms', 1),
  figure('max ms', 'latencyMaxMs', 1),
  figure('bare p99', 'bareP99Ms', 2),
  figure('bare max', 'bareMaxMs', 1),
  figure('loop p99', 'loopDelayP99Ms', 1),
  figure('loop max', 'loopDelayMaxMs', 1),
  figure('young/s', 'minorCollectionsPerSecond', 1),
  figure('whole/s', 'majorCollectionsPerSecond', 2),
  figure('longest ms', 'longestCollectionMs', 1),
  NOTES,
]

function loadLegend({ repeat, seconds, warmup }: Options): string {
  return `Median (range) of ${repeat} x ${seconds} s after ${warmup} s of the same load, ${CONNECTIONS} connections, distinct client addresses behind a
proxy, which have fetched a challenge before they come to /verify; Node.js ${process.version}.
us/request: CPU time, user and system, of all processes of the server. x bare: taken within a repetition. Redis' budget is
for a core that runs the bare server at ${BARE_US} us, scaled to this one. OVER: the median is above the budget.
busy: CPU time of the worker over measured time; under ${percent(BUSY_MIN)} it is marked.
Latencies here are those of a closed loop: the load waits when the server does.`
}

const LATENCY_LEGEND = `\
Rates at which the worker is so busy. Latency runs from when a request was due, whether or not it could be sent then, to the last
byte of its answer. bare: the bare server at the same rate, which has the delays of the machine and of the generator, the floor of what
can be told here. loop: how long the worker's event loop took to come to a timer of 1 ms. young, whole: collections of the young generation
and of the whole heap; longest: the longest pause for one.`

const INTRO =
  'The service on loopback, beside a bare uWebSockets.js server that reads the bodies of the same requests and answers with as many bytes. Ratios are taken within a repetition; they count, not the absolutes.'

export function reportOf(rows: readonly Row[], options: Options): string {
  const full = rows.filter(({ busy }) => busy === undefined)
  const atRates = rows.filter(({ busy }) => busy !== undefined)
  const section = (shown: string, legend: string) => (shown === '' ? [] : [shown, legend])
  return reportText([
    ...section(loadTable(full), loadLegend(options)),
    ...section(table('Latency at fixed rates', LATENCY_CELLS, atRates), LATENCY_LEGEND),
    aimsText(aimsOf(rows)),
    INTRO,
  ])
}

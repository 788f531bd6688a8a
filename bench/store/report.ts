/** The rows as tables with their aims. */

import { STORE_KINDS, type StoreKind } from '../../test/harness/service.ts'
import { disturbanceNote } from '../disturbance.ts'
import type { Aim, Cell } from '../report/report.ts'
import { aimsText, figure, left, machine, notesText, reportText, right, table } from '../report/report.ts'
import { FIGURES, type FigureName, type Part, type Row, type Run } from './figures.ts'
import { AT_LIMITS, type Sizes, TYPICAL } from './parts.ts'

type StoreReport = ReturnType<typeof figuresOf>

export function figuresOf(rows: readonly Row[], options: Sizes & { readonly repeat: number }) {
  return { surroundings: machine(), options, rows, aims: aimsOf(rows) }
}

/** Aims of the design, not bounds that were measured. */
const REDIS_US_MAX = 5
const ADDRESS_BYTES_MAX = 1024
const GROWTH_MAX = 1.15

function aimsOf(rows: readonly Row[]): Aim[] {
  const costs = ['challenge', 'verification'].flatMap(operation => {
    const about = `Redis CPU of a ${operation} at most ${REDIS_US_MAX} us`
    const judged = rows.filter(
      row => row.part === 'costs' && row.store === 'redis' && row.about === operation,
    )
    return aimOf(about, judged, 'redisUs', REDIS_US_MAX)
  })
  const memory = [TYPICAL, AT_LIMITS].flatMap(state => {
    const about = `Redis memory of an address, ${state}, at most ${ADDRESS_BYTES_MAX} bytes`
    const judged = rows.filter(({ store, about }) => store === 'redis' && about === state)
    return aimOf(about, judged, 'bytesPerAddress', ADDRESS_BYTES_MAX)
  })
  return [...costs, ...memory, ...growthAim(rows, 'redis'), ...growthAim(rows, 'embedded')]
}

function growthAim(rows: readonly Row[], store: StoreKind): Aim[] {
  const grown = rows.filter(row => row.part === 'growth' && row.store === store)
  if (new Set(grown.map(({ addresses }) => addresses)).size < 2) return []
  const most = Math.max(...grown.map(({ addresses }) => addresses!)).toLocaleString('en')
  const what = `CPU time of ${store === 'redis' ? 'Redis' : 'the store process'} with up to ${most} addresses`
  return aimOf(`${what} at most ${GROWTH_MAX} x that with the fewest`, grown, 'cpuOverFewest', GROWTH_MAX)
}

/** Judged by the worst row; none if no row has the figure. */
function aimOf(about: string, rows: readonly Row[], name: FigureName, max: number): Aim[] {
  const medians = rows.flatMap(({ figures }) => figures[name]?.median ?? [])
  const worst = Math.max(...medians)
  return medians.length === 0 ? [] : [{ about, isMet: worst <= max, found: worst.toFixed(2) }]
}

const SHOWN: readonly FigureName[] = ['redisUs', 'storeUs', 'scriptUs', 'bytesPerAddress', 'cpuOverFewest']

/** One line for each run, while people wait. */
export function progressLine({ row, sample }: Run): string {
  const { part, store, about, batch, addresses } = row
  // The store process has no time of scripts: its time is seen at the client.
  const shown: readonly FigureName[] = store === 'embedded' ? [...SHOWN, 'wallUs', 'clientUs'] : SHOWN
  const figures = shown.flatMap(name =>
    sample[name] === undefined ? [] : `${name} ${sample[name].toFixed(2)}`,
  )
  const sizes = [
    batch === undefined ? [] : `batch ${batch}`,
    addresses === undefined ? [] : `${addresses.toLocaleString('en')} addresses`,
  ]
  return `${[part, store, about, ...sizes.flat()].join(', ')}: ${figures.join(', ')}`
}

const LEGENDS: Readonly<Record<Part, string>> = {
  costs: `\
Script us includes the commands that scripts run, and any time in which the system ran something else. Client CPU: of the whole bench process, driver included.`,
  memory:
    'Memory: used_memory of Redis, all its keys and tables; resident memory of the store process, garbage included. Keys of tokens are not in it. At all limits: 60 challenges and 30 verifications, of two sites, within a minute.',
  growth:
    'Growth: operations of new addresses beside those that are active; x fewest: against the fewest addresses of the same repetition. A store process is warm: its addresses came before, and were forgotten.',
}

export function reportOf({ options, surroundings, rows, aims }: StoreReport): string {
  const { node, cores, loadAverage } = surroundings
  const legend = [
    `Median (range) of ${options.repeat} repetitions, each on a fresh store; ${options.operations} operations of each kind in a pass; Node.js ${node}, ${cores} cores, load average ${loadAverage.toFixed(2)}.`,
    'us: microseconds for each operation, CPU time being user and system. Batch: operations asked for in one tick of the event loop. Every answer was the expected one.',
    ...new Set(rows.map(({ part }) => LEGENDS[part])),
  ]
  return reportText([...TABLES.map(plan => tableOf(plan, rows)), aimsText(aims), legend.join('\n')])
}

const STORE: Cell<Row> = [left('store'), ({ store }) => store]
const OPERATION: Cell<Row> = [left('operation'), ({ about }) => about]
const BATCH: Cell<Row> = [right('batch'), ({ batch }) => String(batch)]
const ADDRESSES: Cell<Row> = [right('addresses'), ({ addresses }) => addresses!.toLocaleString('en')]
const LABELS: Readonly<Record<Part, readonly Cell<Row>[]>> = {
  costs: [OPERATION, BATCH],
  memory: [STORE, [left('address has'), ({ about }) => about], ADDRESSES],
  growth: [OPERATION, ADDRESSES],
}

type TablePlan = readonly [title: string, part: Part, stores: readonly StoreKind[], figures: string]
const TABLES: readonly TablePlan[] = [
  [
    'Redis: cost of an operation',
    'costs',
    ['redis'],
    'redisUs scriptUs commands operationsPerCall bytesIn bytesOut clientUs driverUs',
  ],
  [
    'Store process: cost of an operation',
    'costs',
    ['embedded'],
    'storeUs wallUs clientUs driverUs longestBatchMs',
  ],
  ['Memory of Redis and of the store process', 'memory', STORE_KINDS, 'bytesPerAddress keysPerAddress'],
  ['Redis: growth', 'growth', ['redis'], 'redisUs cpuOverFewest scriptUs timeOverFewest clientUs'],
  ['Store process: growth', 'growth', ['embedded'], 'storeUs cpuOverFewest wallUs timeOverFewest clientUs'],
]

function tableOf([title, part, stores, figures]: TablePlan, all: readonly Row[]): string {
  const names = figures.split(' ') as (keyof typeof FIGURES)[]
  const cells = names.map(name => figure(FIGURES[name][0], name, FIGURES[name][1]))
  const rows = all.filter(row => row.part === part && stores.includes(row.store))
  return table(title, [...LABELS[part], ...cells, [left('notes'), notesOf]], rows)
}

function notesOf({ figures: { othersBusy, expiredKeys } }: Row): string {
  const expired = expiredKeys?.max ?? 0
  const expiredNote = expired > 0 ? `up to ${expired.toFixed(0)} keys had expired before the end` : ''
  return notesText(disturbanceNote(othersBusy?.median), expiredNote)
}

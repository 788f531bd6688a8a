/** The rows as tables with their aims. */

import type { StoreKind } from '../../test/harness/service.ts'
import { disturbanceNote } from '../disturbance.ts'
import type { Aim, Cell } from '../report/report.ts'
import { aimsText, figure, left, machine, notesText, reportText, right, table } from '../report/report.ts'
import { FIGURES, type FigureName, type Part, type Row, type Run } from './figures.ts'
import { AT_LIMITS, type Sizes, TYPICAL } from './parts.ts'

type StoreReport = ReturnType<typeof figuresOf>

export function figuresOf(rows: readonly Row[], options: Sizes & { readonly repeat: number }) {
  return { surroundings: machine(), options, rows, aims: aimsOf(rows) }
}

const REDIS_US_MAX = 5
const ADDRESS_BYTES_MAX = 1024
const GROWTH_MAX = 1.15

function aimsOf(rows: readonly Row[]): Aim[] {
  const costs = ['challenge', 'verification'].flatMap(operation => {
    const about = `Redis CPU of a ${operation} at most ${REDIS_US_MAX} us`
    const judged = rows.filter(row => row.part === 'costs' && row.store === 'redis' && row.of === operation)
    return aimOf(about, judged, 'redisUs', REDIS_US_MAX)
  })
  const memory = [TYPICAL, AT_LIMITS].flatMap(state => {
    const about = `Redis memory of an address, ${state}, at most ${ADDRESS_BYTES_MAX} bytes`
    const judged = rows.filter(({ store, of }) => store === 'redis' && of === state)
    return aimOf(about, judged, 'bytesPerAddress', ADDRESS_BYTES_MAX)
  })
  return [...costs, ...memory, ...growthAim(rows, 'redis'), ...growthAim(rows, 'embedded')]
}

function growthAim(rows: readonly Row[], store: StoreKind): Aim[] {
  const grown = rows.filter(row => row.part === 'growth' && row.store === store)
  if (new Set(grown.map(({ addresses }) => addresses)).size < 2) return []
  const most = Math.max(...grown.map(({ addresses }) => addresses!)).toLocaleString('en')
  const what = `CPU time of ${store === 'redis' ? 'Redis' : 'the store process'} with up to ${most} addresses`
  return aimOf(`${what} at most ${GROWTH_MAX} x that with the fewest`, grown, 'cpuTimesFewest', GROWTH_MAX)
}

/** Judged by the worst row; none if no row has the figure. */
function aimOf(about: string, rows: readonly Row[], name: FigureName, max: number): Aim[] {
  const medians = rows.flatMap(({ figures }) => figures[name]?.median ?? [])
  const worst = Math.max(...medians)
  return medians.length === 0 ? [] : [{ about, isMet: worst <= max, found: worst.toFixed(2) }]
}

const SHOWN = 'redisUs storeUs scriptUs bytesPerAddress cpuTimesFewest'.split(' ')

/** One line for each run, while people wait. */
export function progressLine({ row, sample }: Run): string {
  const { part, store, of, batch, addresses } = row
  const shown = [...SHOWN, ...(store === 'embedded' ? ['wallUs', 'clientUs'] : [])] as FigureName[]
  const figures = shown.flatMap(name =>
    sample[name] === undefined ? [] : `${name} ${sample[name].toFixed(2)}`,
  )
  const sizes = [
    batch === undefined ? [] : `batch ${batch}`,
    addresses === undefined ? [] : `${addresses.toLocaleString('en')} addresses`,
  ]
  return `${[part, store, of, ...sizes.flat()].join(', ')}: ${figures.join(', ')}`
}

const LEGENDS: Readonly<Record<Part, string>> = {
  costs: `\
Script us includes the commands that scripts run, and any time in which the system ran something else. Client CPU: of the whole bench process, driver included.`,
  memory:
    'Memory: used_memory of Redis, all its keys and tables; resident memory of the store process, garbage included. Keys of tokens are not in it. At all limits: 60 challenges and 30 verifications, of two sites, within a minute.',
  growth:
    'Growth: operations of new addresses beside those that are active; x fewest: against the fewest addresses of the same repetition.',
}

export function reportOf({ options, surroundings, rows, aims }: StoreReport): string {
  const { node, cores, loadAverage } = surroundings
  const legend = [
    `Median (range) of ${options.repeat} repetitions, each on a fresh store; ${options.operations} operations of each kind in a pass; Node.js ${node}, ${cores} cores, load average ${loadAverage.toFixed(2)}.`,
    'us: microseconds for each operation, CPU time being user and system. Batch: operations asked for in one event-loop turn. Every answer was the expected one.',
    ...new Set(rows.map(({ part }) => LEGENDS[part])),
  ]
  return reportText([...PLANS.map(tableOf => tableOf(rows)), aimsText(aims), legend.join('\n')])
}

const STORE: Cell<Row> = [left('store'), ({ store }) => store]
const OPERATION: Cell<Row> = [left('operation'), ({ of }) => of]
const BATCH: Cell<Row> = [right('batch'), ({ batch }) => String(batch)]
const ADDRESSES: Cell<Row> = [right('addresses'), ({ addresses }) => addresses!.toLocaleString('en')]
const LABELS: Readonly<Record<Part, readonly Cell<Row>[]>> = {
  costs: [OPERATION, BATCH],
  memory: [STORE, [left('address has'), ({ of }) => of], ADDRESSES],
  growth: [OPERATION, ADDRESSES],
}

/** @param wanted tested with part and store of a row @returns makes the table of these rows that have the first of the figures */
function plan(title: string, wanted: RegExp, figures: string) {
  const names = figures.split(' ') as (keyof typeof FIGURES)[]
  const cells = names.map(name => figure(FIGURES[name][0], name, FIGURES[name][1]))
  return (all: readonly Row[]) => {
    const rows = all.filter(row => wanted.test(`${row.part} ${row.store}`) && row.figures[names[0]!])
    return rows.length === 0
      ? ''
      : table(title, [...LABELS[rows[0]!.part], ...cells, [left('notes'), notesOf]], rows)
  }
}

const PLANS = [
  plan(
    'Redis: cost of an operation',
    /^costs redis/,
    'redisUs scriptUs commands operationsPerCall bytesIn bytesOut clientUs driverUs',
  ),
  plan(
    'Store process: cost of an operation',
    /^costs embedded/,
    'storeUs wallUs clientUs driverUs longestTurnMs',
  ),
  plan('Memory of Redis and of the store process', /^memory/, 'bytesPerAddress keysPerAddress'),
  plan('Redis: growth', /^growth redis/, 'redisUs cpuTimesFewest scriptUs timeTimesFewest clientUs'),
  plan('Store process: growth', /^growth embedded/, 'storeUs cpuTimesFewest wallUs timeTimesFewest clientUs'),
]

/** Why the figures are worth less than others. */
function notesOf({ figures: { othersBusy, expiredKeys } }: Row): string {
  const expired = expiredKeys?.max ?? 0
  const expiredNote = expired > 0 ? `up to ${expired.toFixed(0)} keys had expired before the end` : ''
  return notesText(disturbanceNote(othersBusy?.median), expiredNote)
}

/** The rows as tables with their aims. */

import type { StoreKind } from '../../test/harness/service.ts'
import { disturbanceNote } from '../disturbance.ts'
import {
  aimsText,
  left,
  machine,
  type Report,
  type ReportTable,
  right,
  table,
  text,
} from '../report/report.ts'
import type { FigureName, Part, Row, Run } from './figures.ts'
import { AT_LIMITS, type Sizes, TYPICAL } from './parts.ts'

export interface StoreReport {
  /** When the report was made. */
  readonly surroundings: ReturnType<typeof machine> & { readonly node: string }
  readonly options: Sizes & { readonly repeat: number }
  readonly rows: readonly Row[]
  readonly aims: readonly Aim[]
  /** Medians of Redis, where both were measured. */
  readonly memory:
    | { readonly bytesPerActiveAddress: { readonly typical: number; readonly atLimits: number } }
    | undefined
}

export interface Aim {
  readonly text: string
  readonly isMet: boolean
  /** The median that decides, of the row that is worst. */
  readonly value: number
}

const REDIS_US_MAX = 5
const ADDRESS_BYTES_MAX = 1024
const GROWTH_MAX = 1.15

export function figuresOf(rows: readonly Row[], options: StoreReport['options']): StoreReport {
  const [typical, atLimits] = [TYPICAL, AT_LIMITS].map(
    state => rows.find(row => row.store === 'redis' && row.of === state)?.figures.bytesPerAddress?.median,
  )
  const isMeasured = typical !== undefined && atLimits !== undefined
  return {
    surroundings: { node: process.version, ...machine() },
    options,
    rows,
    aims: aimsOf(rows),
    memory: isMeasured ? { bytesPerActiveAddress: { typical, atLimits } } : undefined,
  }
}

function aimsOf(rows: readonly Row[]): Aim[] {
  const aims = [
    ...['challenge', 'verification'].map(operation =>
      aimOf(
        `Redis CPU of a ${operation} at most ${REDIS_US_MAX} us`,
        rows.filter(({ part, store, of }) => part === 'costs' && store === 'redis' && of === operation),
        'redisUs',
        REDIS_US_MAX,
      ),
    ),
    ...[TYPICAL, AT_LIMITS].map(state =>
      aimOf(
        `Redis memory of an address, ${state}, at most ${ADDRESS_BYTES_MAX} bytes`,
        rows.filter(({ store, of }) => store === 'redis' && of === state),
        'bytesPerAddress',
        ADDRESS_BYTES_MAX,
      ),
    ),
    ...(['redis', 'embedded'] as const).map(store => growthAim(rows, store)),
  ]
  return aims.filter(aim => aim !== undefined)
}

function growthAim(rows: readonly Row[], store: StoreKind): Aim | undefined {
  const grown = rows.filter(row => row.part === 'growth' && row.store === store)
  const sizes = new Set(grown.map(({ addresses }) => addresses))
  if (sizes.size < 2) return undefined
  const most = Math.max(...grown.map(({ addresses }) => addresses!))
  const what = `CPU time of ${store === 'redis' ? 'Redis' : 'LMDB'}`
  const text = `${what} with up to ${most.toLocaleString('en')} addresses at most ${GROWTH_MAX} x that with the fewest`
  return aimOf(text, grown, 'cpuTimesFewest', GROWTH_MAX)
}

/** undefined if there is nothing to judge by. */
function aimOf(text: string, rows: readonly Row[], name: FigureName, max: number): Aim | undefined {
  const medians = rows.flatMap(({ figures }) => figures[name]?.median ?? [])
  if (medians.length === 0) return undefined
  const value = Math.max(...medians)
  return { text, isMet: value <= max, value }
}

/** One line for each run, while people wait. */
export function progressLine({ row, sample }: Run): string {
  const shown: FigureName[] = [
    'redisUs',
    'scriptUs',
    'longestCallUs',
    'bytesPerAddress',
    'expiryUs',
    'cpuTimesFewest',
  ]
  if (row.store === 'embedded') shown.push('wallUs', 'clientUs')
  const figures = shown.flatMap(name =>
    sample[name] === undefined ? [] : `${name} ${sample[name].toFixed(2)}`,
  )
  const size = [
    ...(row.batch === undefined ? [] : [`batch ${row.batch}`]),
    ...(row.addresses === undefined ? [] : [`${row.addresses.toLocaleString('en')} addresses`]),
  ]
  return `${row.part}, ${row.store}, ${row.of}, ${size.join(', ')}: ${figures.join(', ')}`
}

const COSTS_LEGEND = `\
Script us includes the commands that scripts run, and, like the longest call, any time in which the system ran something else. Client CPU: of the whole bench process, driver included. PING: a connection of another process, every 2 ms, while all operations run.
Pages written: handed to the system, 4096 bytes each; dirtied: those that the disk was not owed already. The state is not synced, so no operation waits for a disk.`

const LEGENDS: Readonly<Record<Part, string>> = {
  costs: COSTS_LEGEND,
  batches: COSTS_LEGEND,
  memory:
    'Memory: used_memory of Redis, all its keys and tables; disk blocks of the state of LMDB. Keys of tokens are not in it. At all limits: 60 challenges and 30 verifications, of two sites, within a minute.',
  expiry:
    'Expiry: CPU time beyond what the idle process takes, after whole visits, redemption included. LMDB is swept by the store itself.',
  growth:
    'Growth: operations of new addresses beside those that are active; x fewest: against the fewest addresses of the same repetition.',
}

export function reportOf({ options, surroundings, rows, aims }: StoreReport): Report {
  const { node, cores, loadAverage } = surroundings
  const legends = new Set(rows.map(({ part }) => LEGENDS[part]))
  const intro = [
    `Median (range) of ${options.repeat} repetitions, each on a fresh store; ${options.operations} operations of each kind in a pass; Node.js ${node}, ${cores} cores, load average ${loadAverage.toFixed(2)}.`,
    'us: microseconds for each operation, CPU time being user and system. Batch: operations asked for in one event-loop turn. Every answer was the expected one.',
    ...legends,
  ]
  const told = aims.map(({ text, isMet, value }) => ({ about: text, isMet, found: value.toFixed(2) }))
  return {
    title: 'powgate: the stores',
    intro: intro.join('\n'),
    parts: [...tablesOf(rows), aimsText(told)],
  }
}

interface Plan {
  readonly title: string
  readonly includes: (row: Row) => boolean
  readonly labels: readonly (keyof typeof LABELS)[]
  readonly figures: readonly (readonly [title: string, name: FigureName, digits: number])[]
}

const LABELS = {
  store: [left('store'), (row: Row) => row.store],
  operation: [left('operation'), (row: Row) => row.of],
  state: [left('address has'), (row: Row) => row.of],
  lives: [left('lives end'), (row: Row) => row.of],
  batch: [right('batch'), (row: Row) => String(row.batch)],
  addresses: [right('addresses'), (row: Row) => row.addresses!.toLocaleString('en')],
} as const

const isMixed = (row: Row) => row.figures.longestCallUs !== undefined

const PLANS: readonly Plan[] = [
  {
    title: 'Redis: cost of an operation',
    includes: row => row.part === 'costs' && row.store === 'redis' && !isMixed(row),
    labels: ['operation', 'batch'],
    figures: [
      ['Redis CPU us', 'redisUs', 2],
      ['script us', 'scriptUs', 2],
      ['commands', 'commands', 2],
      ['operations/call', 'operationsPerCall', 1],
      ['bytes in', 'bytesIn', 0],
      ['bytes out', 'bytesOut', 0],
      ['client CPU us', 'clientUs', 2],
      ['driver alone', 'driverUs', 2],
    ],
  },
  {
    title: 'Redis: how long others wait',
    includes: row => row.store === 'redis' && isMixed(row),
    labels: ['operation', 'batch'],
    figures: [
      ['longest call us', 'longestCallUs', 0],
      ['calls over 1 ms', 'callsOver1Ms', 0],
      ['PING min ms', 'pingMinMs', 2],
      ['mean ms', 'pingMeanMs', 2],
      ['max ms', 'pingMaxMs', 2],
    ],
  },
  {
    title: 'LMDB: cost of an operation',
    includes: row => row.part === 'costs' && row.store === 'embedded',
    labels: ['operation', 'batch'],
    figures: [
      ['wall us', 'wallUs', 2],
      ['CPU us', 'clientUs', 2],
      ['driver alone', 'driverUs', 2],
      ['transaction us', 'transactionUs', 0],
      ['transaction CPU us', 'transactionCpuUs', 0],
      ['longest turn ms', 'longestTurnMs', 2],
      ['pages written', 'pagesWritten', 2],
      ['pages dirtied', 'pagesDirtied', 2],
      ['page faults', 'pageFaults', 2],
      ['tree depth', 'treeDepth', 0],
    ],
  },
  {
    title: 'Redis: batch sizes',
    includes: row => row.part === 'batches' && row.store === 'redis' && !isMixed(row),
    labels: ['operation', 'batch'],
    figures: [
      ['Redis CPU us', 'redisUs', 2],
      ['script us', 'scriptUs', 2],
      ['script call us', 'scriptCallUs', 0],
      ['operations/call', 'operationsPerCall', 1],
      ['client CPU us', 'clientUs', 2],
    ],
  },
  {
    title: 'LMDB: batch sizes',
    includes: row => row.part === 'batches' && row.store === 'embedded',
    labels: ['operation', 'batch'],
    figures: [
      ['wall us', 'wallUs', 2],
      ['CPU us', 'clientUs', 2],
      ['transaction us', 'transactionUs', 0],
      ['longest turn ms', 'longestTurnMs', 2],
      ['pages written', 'pagesWritten', 2],
    ],
  },
  {
    title: 'Memory of Redis and files of LMDB',
    includes: row => row.part === 'memory',
    labels: ['store', 'state', 'addresses'],
    figures: [
      ['bytes/address', 'bytesPerAddress', 0],
      ['keys/address', 'keysPerAddress', 2],
    ],
  },
  {
    title: 'Expiry',
    includes: row => row.part === 'expiry',
    labels: ['store', 'lives'],
    figures: [
      ['CPU us/key', 'expiryUs', 2],
      ['keys', 'keys', 0],
      ['keys/visit', 'keysPerAddress', 2],
      ['took ms', 'tookMs', 0],
      ['idle CPU share', 'idleShare', 4],
    ],
  },
  {
    title: 'Redis: growth',
    includes: row => row.part === 'growth' && row.store === 'redis',
    labels: ['operation', 'addresses'],
    figures: [
      ['Redis CPU us', 'redisUs', 2],
      ['x fewest', 'cpuTimesFewest', 2],
      ['script us', 'scriptUs', 2],
      ['x fewest', 'timeTimesFewest', 2],
      ['client CPU us', 'clientUs', 2],
    ],
  },
  {
    title: 'LMDB: growth',
    includes: row => row.part === 'growth' && row.store === 'embedded',
    labels: ['operation', 'addresses'],
    figures: [
      ['CPU us', 'clientUs', 2],
      ['x fewest', 'cpuTimesFewest', 2],
      ['transaction us', 'transactionUs', 0],
      ['x fewest', 'timeTimesFewest', 2],
      ['pages written', 'pagesWritten', 2],
      ['tree depth', 'treeDepth', 0],
    ],
  },
]

/** Only those that have rows. */
function tablesOf(rows: readonly Row[]): ReportTable[] {
  const tables = PLANS.map(({ title, includes, labels, figures }) =>
    table(
      title,
      [
        ...labels.map(name => LABELS[name]),
        ...figures.map(
          ([figure, name, digits]) => [right(figure), (row: Row) => text(row.figures[name], digits)] as const,
        ),
        [left('notes'), notesOf],
      ],
      rows.filter(includes),
    ),
  )
  return tables.filter(({ rows }) => rows.length > 0)
}

/** Why the figures are worth less than others. */
function notesOf({ figures: { othersBusy, expiredKeys } }: Row): string {
  const notes = [disturbanceNote(othersBusy?.median)].filter(note => note !== '')
  if (expiredKeys !== undefined && expiredKeys.max > 0) {
    notes.push(`up to ${expiredKeys.max.toFixed(0)} keys had expired before the end`)
  }
  return notes.join('; ')
}

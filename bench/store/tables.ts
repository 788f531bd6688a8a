/** The tables of the report: their rows and columns. */

import { disturbanceNote } from '../disturbance.ts'
import type { ReportTable } from '../report/report.ts'
import { type Column, left, right, text } from '../report/report.ts'
import type { FigureName, Row } from './figures.ts'

interface Plan {
  readonly title: string
  readonly includes: (row: Row) => boolean
  readonly labels: readonly (keyof typeof LABELS)[]
  readonly figures: readonly (readonly [title: string, name: FigureName, digits: number])[]
}

const LABELS = {
  store: { title: 'store', align: 'left', text: (row: Row) => row.store },
  operation: { title: 'operation', align: 'left', text: (row: Row) => row.of },
  state: { title: 'address has', align: 'left', text: (row: Row) => row.of },
  lives: { title: 'lives end', align: 'left', text: (row: Row) => row.of },
  batch: { title: 'batch', align: 'right', text: (row: Row) => String(row.batch) },
  addresses: {
    title: 'addresses',
    align: 'right',
    text: (row: Row) => row.addresses!.toLocaleString('en'),
  },
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
export function tablesOf(rows: readonly Row[]): ReportTable[] {
  return PLANS.map(plan => tableOf(plan, rows.filter(plan.includes))).filter(table => table.rows.length > 0)
}

function tableOf({ title, labels, figures }: Plan, rows: readonly Row[]): ReportTable {
  const columns: Column[] = [
    ...labels.map(name => LABELS[name]),
    ...figures.map(([figure]) => right(figure)),
    left('notes'),
  ]
  const cells = rows.map(row => [
    ...labels.map(name => LABELS[name].text(row)),
    ...figures.map(([, name, digits]) => text(row.figures[name], digits)),
    notesOf(row).join('; '),
  ])
  return { kind: 'table', title, columns, rows: cells }
}

/** Why the figures are worth less than others. */
function notesOf({ figures: { othersBusy, expiredKeys } }: Row): string[] {
  const notes = [disturbanceNote(othersBusy?.median)].filter(note => note !== '')
  if (expiredKeys !== undefined && expiredKeys.max > 0) {
    notes.push(`up to ${expiredKeys.max.toFixed(0)} keys had expired before the end`)
  }
  return notes
}

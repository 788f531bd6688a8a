/** The command line of `npm run bench:store`. */

import { STORE_KINDS, type StoreKind } from '../../test/harness/service.ts'
import { integer, oneOf, parsed } from '../support/arguments.ts'

export const PARTS = ['costs', 'batches', 'memory', 'expiry', 'growth'] as const
export type Part = (typeof PARTS)[number]

export interface Options {
  readonly stores: readonly StoreKind[]
  readonly parts: readonly Part[]
  readonly repeat: number
  /** Of each kind in a measured pass. */
  readonly operations: number
  /** Operations in one event-loop turn, wherever the batch size is not what is compared. */
  readonly batch: number
  readonly maxAddresses: number
  readonly isJson: boolean
  readonly reportFile: string | undefined
}

export const HELP = `
Measures the stores in process, without HTTP: what a challenge, a verification and a redemption cost Redis or LMDB,
what an address takes in memory or on disk, what expiry costs, and whether any of it grows with the addresses.

  npm run bench:store -- [options]

  --store embedded|redis|both   default both; redis needs redis-server 7 or newer on the path
  --only PART                   costs, batches, memory, expiry or growth; repeatable; default all
  --repeat N                    repetitions, each on a fresh store, 1 to 100, default 5
  --operations N                of each kind in a measured pass, 100 to 200000, default 20000
  --batch N                     operations in one event-loop turn, 1 to 1000, default 32
  --max-addresses N             how far addresses grow, 1000 to 1000000, default 1000000; memory takes no more either
  --json                        the figures as JSON on standard output
  --report FILE                 the figures as a page of HTML too
  --help                        this text

All of it takes some fifteen minutes, most of them for growth. Ends with code 1 if any answer was not the expected one.
`.trim()

const OPTIONS = {
  store: { type: 'string', default: 'both' },
  only: { type: 'string', multiple: true },
  repeat: { type: 'string', default: '5' },
  operations: { type: 'string', default: '20000' },
  batch: { type: 'string', default: '32' },
  'max-addresses': { type: 'string', default: '1000000' },
  json: { type: 'boolean', default: false },
  report: { type: 'string' },
  help: { type: 'boolean', default: false },
} as const

/** undefined: help is asked for. Throws UsageError. */
export function parseOptions(args: readonly string[]): Options | undefined {
  const { values } = parsed(args, { options: OPTIONS })
  if (values.help) return undefined
  const only = values.only?.map(name => oneOf('--only', name, PARTS)) ?? PARTS
  return {
    stores: values.store === 'both' ? STORE_KINDS : [oneOf('--store', values.store, STORE_KINDS)],
    parts: PARTS.filter(part => only.includes(part)),
    repeat: integer('--repeat', values.repeat, 1, 100),
    operations: integer('--operations', values.operations, 100, 200_000),
    batch: integer('--batch', values.batch, 1, 1000),
    maxAddresses: integer('--max-addresses', values['max-addresses'], 1000, 1_000_000),
    isJson: values.json,
    reportFile: values.report,
  }
}

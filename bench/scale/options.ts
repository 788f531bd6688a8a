/** The command line of `npm run bench:scale`. */

import { availableParallelism } from 'node:os'
import { STORE_KINDS, type StoreKind } from '../../test/harness/service.ts'
import { ENDPOINTS, type Endpoint } from '../http/traffic.ts'
import { integer, number, oneOf, parsed, writableFile } from '../support/arguments.ts'

export type Part = 'workers' | 'cluster' | 'addresses' | 'sites'
export const PARTS: readonly Part[] = ['workers', 'cluster', 'addresses', 'sites']

export interface Options {
  readonly parts: readonly Part[]
  readonly stores: readonly StoreKind[]
  readonly endpoints: readonly Endpoint[]
  readonly seconds: number
  readonly warmUpSeconds: number
  readonly repeat: number
  readonly connections: number
  /** The most worker processes. */
  readonly workers: number
  readonly addressesMax: number
  readonly sitesMax: number
  /** Where to write the report as a web page. */
  readonly reportFile: string | undefined
  readonly isJson: boolean
}

/** The most and the fewest that make sense: addresses must all be written within a minute. */
export const ADDRESSES_MIN = 1000
const ADDRESSES_MAX = 4_000_000
/** Twice what a worker caches. */
const SITES_MAX = 200_000

export const HELP = `
Measures how the cost of a request grows: with workers, from one Redis to a Cluster, with the addresses that are in the
store, with the sites that requests name. Every point has a fresh server and store; the points of a series are measured in
turn, over and over, and compared within a turn.

  npm run bench:scale -- [options]

  --only PART                   workers, cluster, addresses or sites; repeatable; default all four
  --store embedded|redis|both   default both; redis needs redis-server (and redis-cli for the Cluster) on the path
  --endpoint NAME               challenge, verify or verify-token; repeatable; default all three
  --workers N                   1, 2, 4, ... up to N workers, default the number of cores (${availableParallelism()})
  --max-addresses N             1,000, 10,000, ... up to N addresses, default 1000000
  --max-sites N                 1, 10, 100, ... up to N sites, default 100000, which is what a worker caches
  --seconds N                   measured time of a point, 0.1 to 10, default 2
  --warmup N                    seconds of load before it, 0 to 10, default 3: compilation by V8 takes over 1 s
  --repeat N                    turns, 1 to 100, default 5
  --connections N               1 to 512, each with one request under way, default 128
  --report FILE.html            a web page with the figures
  --json                        the figures as JSON on standard output
  --help                        this text

All of it takes over an hour. Ends with code 1 if any answer was not the expected one; whether costs stay flat is told,
but does not change the code.
`.trim()

const OPTIONS = {
  only: { type: 'string', multiple: true },
  store: { type: 'string', default: 'both' },
  endpoint: { type: 'string', multiple: true },
  seconds: { type: 'string', default: '2' },
  warmup: { type: 'string', default: '3' },
  repeat: { type: 'string', default: '5' },
  connections: { type: 'string', default: '128' },
  workers: { type: 'string', default: String(availableParallelism()) },
  'max-addresses': { type: 'string', default: '1000000' },
  'max-sites': { type: 'string', default: '100000' },
  report: { type: 'string' },
  json: { type: 'boolean', default: false },
  help: { type: 'boolean', default: false },
} as const

/** undefined: help is asked for. Throws UsageError. */
export function parseOptions(args: readonly string[]): Options | undefined {
  const { values } = parsed(args, { options: OPTIONS })
  if (values.help) return undefined
  return {
    parts: values.only?.map(name => oneOf('--only', name, PARTS)) ?? PARTS,
    stores: values.store === 'both' ? STORE_KINDS : [oneOf('--store', values.store, STORE_KINDS)],
    endpoints: values.endpoint?.map(name => oneOf('--endpoint', name, ENDPOINTS)) ?? ENDPOINTS,
    seconds: number('--seconds', values.seconds, 0.1, 10),
    warmUpSeconds: number('--warmup', values.warmup, 0, 10),
    repeat: integer('--repeat', values.repeat, 1, 100),
    connections: integer('--connections', values.connections, 1, 512),
    workers: integer('--workers', values.workers, 1, 256),
    addressesMax: integer('--max-addresses', values['max-addresses'], ADDRESSES_MIN, ADDRESSES_MAX),
    sitesMax: integer('--max-sites', values['max-sites'], 1, SITES_MAX),
    reportFile: writableFile('--report', values.report),
    isJson: values.json,
  }
}

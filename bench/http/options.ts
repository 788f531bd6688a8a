/** The command line of `npm run bench:http`. */

import { STORE_KINDS, type StoreKind } from '../../test/harness/service.ts'
import { integer, number, oneOf, parsed, writableFile } from '../support/arguments.ts'
import { ENDPOINTS, type Endpoint } from './traffic.ts'

export interface Options {
  readonly stores: readonly StoreKind[]
  readonly endpoints: readonly Endpoint[]
  readonly seconds: number
  readonly warmUpSeconds: number
  readonly repeat: number
  readonly connections: number
  /** Whether requests come as through a load balancer, each from an address of its own. */
  readonly isForwarded: boolean
  /** Whether visitors of /verify have fetched a challenge before. */
  readonly isSeeded: boolean
  /** Whether latencies are measured at a fixed rate, too. */
  readonly hasLatency: boolean
  /** Requests per second of that; undefined: half of what the slowest server of the endpoint reached. */
  readonly rate: number | undefined
  /** Where to write the report as a web page. */
  readonly reportFile: string | undefined
  readonly isJson: boolean
}

export const HELP = `
Measures the service over HTTP on loopback: CPU time per request of all its processes, with one worker, and of Redis,
beside a bare uWebSockets.js server that reads the bodies of the same requests and answers with as many bytes: at full
load (a closed loop). Then latencies of the same servers at a fixed rate, counted from when each request was due (an open loop).

  npm run bench:http -- [options]

  --store embedded|redis|both   default both; redis needs redis-server on the path
  --endpoint NAME               challenge, verify or verify-token; repeatable; default all three
  --seconds N                   measured time of a case, 0.1 to 60, default 3
  --warmup N                    seconds of load before it, 0 to 60, default 3: compilation by V8 takes over 1 s
  --repeat N                    repetitions, each on a fresh server and store, 1 to 100, default 5
  --connections N               1 to 512, each with one request under way, default 64
  --direct                      no X-Forwarded-For: one client address, limits raised
  --no-seed                     /verify from addresses that the store has never seen; otherwise each has fetched a
                                challenge before, as visitors have
  --no-latency                  full load only
  --rate N                      requests/s of the fixed rate, 1 to 100000; default half of what the slowest server of
                                that endpoint has just reached
  --report FILE.html            a web page with the figures
  --json                        the figures as JSON on standard output
  --help                        this text

Ends with code 1 if any answer was not the expected one.
`.trim()

const OPTIONS = {
  store: { type: 'string', default: 'both' },
  endpoint: { type: 'string', multiple: true },
  seconds: { type: 'string', default: '3' },
  warmup: { type: 'string', default: '3' },
  repeat: { type: 'string', default: '5' },
  connections: { type: 'string', default: '64' },
  direct: { type: 'boolean', default: false },
  'no-seed': { type: 'boolean', default: false },
  'no-latency': { type: 'boolean', default: false },
  rate: { type: 'string' },
  report: { type: 'string' },
  json: { type: 'boolean', default: false },
  help: { type: 'boolean', default: false },
} as const

/** undefined: help is asked for. Throws UsageError. */
export function parseOptions(args: readonly string[]): Options | undefined {
  const { values } = parsed(args, { options: OPTIONS })
  if (values.help) return undefined
  return {
    stores: values.store === 'both' ? STORE_KINDS : [oneOf('--store', values.store, STORE_KINDS)],
    endpoints: values.endpoint?.map(name => oneOf('--endpoint', name, ENDPOINTS)) ?? ENDPOINTS,
    seconds: number('--seconds', values.seconds, 0.1, 60),
    warmUpSeconds: number('--warmup', values.warmup, 0, 60),
    repeat: integer('--repeat', values.repeat, 1, 100),
    connections: integer('--connections', values.connections, 1, 512),
    isForwarded: !values.direct,
    isSeeded: !values['no-seed'],
    hasLatency: !values['no-latency'],
    rate: values.rate === undefined ? undefined : number('--rate', values.rate, 1, 100_000),
    reportFile: writableFile('--report', values.report),
    isJson: values.json,
  }
}

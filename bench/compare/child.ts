/**
 * Entry of the process that runs the service of one tree. The tree's own modules make the service, the site and the requests,
 * because formats of nonces and tokens may differ. Both trees get this tree's load generator.
 */

import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { type LoadResult, runLoad, sendOnce } from '../../test/harness/load/loops.ts'
import { type Endpoint, MARKERS, type Traffic } from '../../test/harness/load/traffic.ts'
import { carryOut } from '../../test/harness/processes.ts'
import type { StoreKind } from '../../test/harness/service.ts'

export interface StartOrder {
  readonly type: 'start'
  readonly endpoint: Endpoint
  readonly store: StoreKind
  readonly warmUpMs: number
  /** Altogether; it comes in turns. */
  readonly measureMs: number
}

export type Order = StartOrder | { readonly type: 'load'; readonly ms: number }

type ServerModule = Pick<typeof import('../http/server.ts'), 'startService'>
type TrafficModule = Pick<typeof import('../../test/harness/load/traffic.ts'), 'buildTraffic'>

const CONNECTIONS = 64
/** Requests are built for this rate; where they run out, what was measured until then counts. */
const REQUESTS_PER_SECOND_MAX = 60_000
const REQUESTS_MAX = 600_000
/** Records of addresses live for a minute: the first must still be there when its visitor comes back. */
const SEED_MS_MAX = 30_000

const root = process.argv[2]!
let running: Awaited<ReturnType<ServerModule['startService']>> | undefined
let traffic: Traffic
let endpoint: Endpoint
let sent = 0

function load<Module>(path: string): Promise<Module> {
  return import(pathToFileURL(join(root, path)).href)
}

/** Visitors of /verify fetch their challenges first. */
async function start({ endpoint: asked, store, warmUpMs, measureMs }: StartOrder): Promise<void> {
  const { startService } = await load<ServerModule>('bench/http/server.ts')
  const { buildTraffic } = await load<TrafficModule>('test/harness/load/traffic.ts')
  endpoint = asked
  running = await startService(store, true)
  const { port, target } = running
  const wanted = Math.ceil(((warmUpMs + measureMs) / 1000) * REQUESTS_PER_SECOND_MAX)
  const spec = { endpoint, count: Math.min(REQUESTS_MAX, wanted), target, isForwarded: true }
  traffic = buildTraffic(spec)
  if (endpoint === 'verify') {
    const to = { port, connections: CONNECTIONS, msMax: SEED_MS_MAX, marker: MARKERS.challenge }
    await sendOnce(to, buildTraffic({ ...spec, endpoint: 'challenge' }))
  }
  await take(warmUpMs)
}

/** The next requests, for so long. */
async function take(ms: number): Promise<LoadResult | undefined> {
  if (ms === 0) return undefined
  const { port, ownPids, redisPids } = running!
  const pids = [...ownPids, ...redisPids]
  const marker = MARKERS[endpoint]
  const spec = { port, connections: CONNECTIONS, warmUpMs: 0, measureMs: ms, recycles: false, marker, pids }
  const result = await runLoad({ ...spec, firstRequest: sent }, traffic)
  sent += result.sent
  if (result.badAnswers > 0) throw new Error(`answered ${result.badAnswer.replaceAll(/\s*\n\s*/g, ' | ')}`)
  return result
}

const act = (order: Order) => (order.type === 'start' ? start(order) : take(order.ms))

carryOut(act, async () => {
  await running?.stop()
})

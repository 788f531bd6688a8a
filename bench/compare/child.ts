/**
 * Entry of the process that runs the service of one tree. The tree's own modules make the service, the site and the requests,
 * because formats of nonces and tokens may differ. Both trees get this tree's load generator.
 */

import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { carryOut } from '../../test/harness/processes.ts'
import type { StoreKind } from '../../test/harness/service.ts'
import { type Requests, type RunResult, runLoad } from '../http/prebuilt.ts'
import { SEED_MS_MAX } from '../http/target.ts'
import { type Endpoint, MARKERS } from '../http/traffic.ts'

export interface StartOrder {
  readonly type: 'start'
  readonly endpoint: Endpoint
  readonly store: StoreKind
  readonly warmUpMs: number
  /** All turns of the load together, so that enough requests are built. */
  readonly measureMs: number
}

export type Order = StartOrder | { readonly type: 'load'; readonly ms: number }

type ServerModule = Pick<typeof import('../http/server.ts'), 'startService'>
type TrafficModule = Pick<typeof import('../http/traffic.ts'), 'buildTraffic'>

/** Requests are built for this rate, but no more than memory allows. Where they run out, what was measured until then counts. */
const REQUESTS_PER_SECOND_MAX = 60_000
const REQUESTS_MAX = 600_000

const root = process.argv[2]!
let running: Awaited<ReturnType<ServerModule['startService']>> | undefined
let requests: Requests
let endpoint: Endpoint

/** A module of the tree that is measured. */
function moduleOf<Module>(path: string): Promise<Module> {
  return import(pathToFileURL(join(root, path)).href)
}

/** Starts the tree's service. Visitors of /verify fetch their challenges first. */
async function start({ endpoint: asked, store, warmUpMs, measureMs }: StartOrder): Promise<void> {
  const { startService } = await moduleOf<ServerModule>('bench/http/server.ts')
  const { buildTraffic } = await moduleOf<TrafficModule>('bench/http/traffic.ts').catch(
    () => moduleOf<TrafficModule>('test/harness/load/traffic.ts'), // where it was before December 2026
  )
  endpoint = asked
  // Revisions before December 2026 take a flag here, whether requests come through a proxy: an object means yes.
  running = await startService(store, {})
  const wanted = Math.ceil(((warmUpMs + measureMs) / 1000) * REQUESTS_PER_SECOND_MAX)
  const count = Math.min(REQUESTS_MAX, wanted)
  const requestsTo = (asked: Endpoint) => {
    // Those revisions read `isForwarded`, which says the same.
    const spec = { endpoint: asked, count, target: running!.target, isForwarded: true }
    return { traffic: buildTraffic(spec), next: 0 }
  }
  requests = requestsTo(endpoint)
  if (endpoint === 'verify') await take(SEED_MS_MAX, 'challenge', requestsTo('challenge'))
  if (warmUpMs > 0) await take(warmUpMs)
}

/** Sends the next requests for this time, to the measured endpoint unless another is named. */
function take(measureMs: number, to = endpoint, sent = requests): Promise<RunResult> {
  const { port, ownPids, redisPids } = running!
  return runLoad({ port, pids: [...ownPids, ...redisPids], marker: MARKERS[to], measureMs }, sent)
}

carryOut(
  (order: Order): Promise<unknown> => (order.type === 'start' ? start(order) : take(order.ms)),
  async () => running?.stop(),
)

/**
 * Entry of the process that runs the service of one tree. The tree's own modules make the service, the site and the requests,
 * because formats of nonces and tokens may differ. Both trees get this tree's load generator.
 */

import { existsSync } from 'node:fs'
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
  /** Whether the visitors of /verify have fetched a challenge. */
  readonly isSeeded: boolean
}

/** `check`: whether the tree has what is needed to load it; answered with nothing. */
export type Order = StartOrder | { readonly type: 'load'; readonly ms: number } | { readonly type: 'check' }

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

/** Throws if the tree has not got what bench/http has. */
async function loadTree(): Promise<ServerModule & TrafficModule> {
  // Where it was until the load generator moved to what tests share.
  const paths = ['test/harness/load/traffic.ts', 'bench/http/traffic.ts']
  const { startService } = await load<ServerModule>('bench/http/server.ts')
  const { buildTraffic } = await load<TrafficModule>(
    paths.find(path => existsSync(join(root, path))) ?? paths[0]!,
  )
  for (const [name, value] of Object.entries({ startService, buildTraffic })) {
    if (typeof value !== 'function') throw new Error(`there is no ${name}`)
  }
  return { startService, buildTraffic }
}

async function start(order: StartOrder): Promise<void> {
  const { startService, buildTraffic } = await loadTree()
  endpoint = order.endpoint
  running = await startService(order.store, true)
  const wanted = Math.ceil(((order.warmUpMs + order.measureMs) / 1000) * REQUESTS_PER_SECOND_MAX)
  const spec = { endpoint, count: Math.min(REQUESTS_MAX, wanted), target: running.target, isForwarded: true }
  traffic = buildTraffic(spec)
  if (endpoint === 'verify' && order.isSeeded) {
    const challenges = buildTraffic({ ...spec, endpoint: 'challenge' })
    const { port } = running
    const to = { port, connections: CONNECTIONS, msMax: SEED_MS_MAX, marker: MARKERS.challenge }
    await sendOnce(to, challenges)
  }
  await take(order.warmUpMs)
}

/** The next requests, for so long. */
async function take(ms: number): Promise<LoadResult | undefined> {
  if (ms === 0) return undefined
  const { port, workerPids, primaryPid, redisPids } = running!
  const pids = [...workerPids, primaryPid, ...redisPids]
  const marker = MARKERS[endpoint]
  const spec = { port, connections: CONNECTIONS, warmUpMs: 0, measureMs: ms, recycles: false, marker, pids }
  const result = await runLoad({ ...spec, firstRequest: sent }, traffic)
  sent += result.sent
  if (result.badAnswers > 0) throw new Error(`answered ${result.badAnswer.replaceAll(/\s*\n\s*/g, ' | ')}`)
  return result
}

async function act(order: Order): Promise<unknown> {
  switch (order.type) {
    case 'check':
      await loadTree()
      return undefined
    case 'start':
      return await start(order)
    case 'load':
      return await take(order.ms)
  }
}

carryOut(act, async () => {
  await running?.stop()
})

/**
 * Entry of the process that starts and loads the service of one tree. The tree's own modules make the service, the site
 * and the requests, because formats of nonces and tokens may differ. Both trees get this tree's load generator.
 */

import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { type LoadResult, runLoad } from '../http/load.ts'
import { MARKERS } from '../http/traffic.ts'
import type { HttpOrder, MeasureOrder } from './http.ts'
import { obey } from './tree-process.ts'

type ServerModule = Pick<typeof import('../http/server.ts'), 'startService'>
type TrafficModule = Pick<typeof import('../http/traffic.ts'), 'buildTraffic'>
type Service = Awaited<ReturnType<ServerModule['startService']>>

/** Requests are built for this rate; where they run out, what was measured until then counts. */
const REQUESTS_PER_SECOND_MAX = 100_000
const REQUESTS_MIN = 20_000
/** As many as memory allows. */
const REQUESTS_MAX = 600_000

const root = process.argv[2]!
let running: Promise<Service> | undefined

function load<Module>(path: string): Promise<Module> {
  return import(pathToFileURL(join(root, path)).href)
}

/** Throws if the tree has not got what bench/http has. */
async function loadTree(): Promise<ServerModule & TrafficModule> {
  const { startService } = await load<ServerModule>('bench/http/server.ts')
  const { buildTraffic } = await load<TrafficModule>('bench/http/traffic.ts')
  for (const [name, value] of Object.entries({ startService, buildTraffic })) {
    if (typeof value !== 'function') throw new Error(`there is no ${name}`)
  }
  return { startService, buildTraffic }
}

async function answer(order: HttpOrder): Promise<LoadResult | undefined> {
  const tree = await loadTree()
  return order.type === 'check' ? undefined : await measure(order, tree)
}

async function measure(
  order: MeasureOrder,
  { startService, buildTraffic }: ServerModule & TrafficModule,
): Promise<LoadResult> {
  running = startService(order.store, true)
  try {
    const service = await running
    const { endpoint, warmUpMs, measureMs, connections } = order
    const wanted = Math.ceil(((warmUpMs + measureMs) / 1000) * REQUESTS_PER_SECOND_MAX)
    const count = Math.max(REQUESTS_MIN, Math.min(REQUESTS_MAX, wanted))
    const traffic = buildTraffic({ endpoint, count, target: service.target, isForwarded: true })
    const { port, workerPids, primaryPid, redisPids } = service
    const pids = [...workerPids, primaryPid, ...redisPids]
    const marker = MARKERS[endpoint]
    const result = await runLoad(
      { port, connections, warmUpMs, measureMs, recycles: false, marker, pids },
      traffic,
    )
    if (result.badAnswers > 0) throw new Error(`answered ${result.badAnswer.replaceAll(/\s*\n\s*/g, ' | ')}`)
    return result
  } finally {
    await stop()
  }
}

async function stop(): Promise<void> {
  const service = await running?.catch(() => undefined)
  running = undefined
  await service?.stop()
}

obey(answer, stop)

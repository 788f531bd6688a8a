/** GET /metrics: what all processes have counted, and what the primary process reads of the system at each request. */

import type { Config } from '../config/config.ts'
import { memoryUsage, openFilesOf } from '../config/open-files.ts'
import { ENDPOINT_NAMES } from '../domain/endpoint.ts'
import { CONTENT_TYPE, exposition } from '../metrics/exposition.ts'
import { cpuMicroseconds } from '../metrics/stats.ts'
import type { FlatName, Values } from '../metrics/table.ts'
import type { Totals } from '../metrics/totals.ts'
import { VERSION } from '../version.ts'
import type { AdminRoute, Supervisor } from './admin-server.ts'

/** What the process of the embedded store uses; pid and memory are undefined while it does not run. */
interface StoreProcessUsage {
  readonly pid: number | undefined
  readonly memory: NodeJS.MemoryUsage | undefined
  readonly cpuMicroseconds: number
}

export function metricsRoute(
  totals: Totals,
  supervisor: Pick<Supervisor, 'askStats'>,
  { deployment, metricsSites }: Pick<Config, 'deployment' | 'metricsSites'>,
  storeProcess: StoreProcessUsage | undefined,
): AdminRoute {
  // A site without any success needs a 0, because an alert compares its successes with last week's.
  const zeroCounts = new Map<FlatName, number>()
  for (const site of metricsSites)
    for (const name of ENDPOINT_NAMES) zeroCounts.set(`siteRequests ${site} ${name} ok`, 0)
  return {
    path: '/metrics',
    async handle(_request, response) {
      await supervisor.askStats()
      const values: Values = {
        ...Object.fromEntries(zeroCounts),
        ...totals.values(),
        ...(await processGauges(totals, storeProcess)),
      }
      // One counter has the time of all processes; so far it has that of the workers.
      values.cpu = (values.cpu ?? 0) + cpuMicroseconds() + (storeProcess?.cpuMicroseconds ?? 0)
      const text = exposition(values, deployment)
      response.writeHead(200, { 'Content-Type': CONTENT_TYPE, 'Content-Length': Buffer.byteLength(text) })
      response.end(text)
    },
  }
}

/** Reads what the primary process knows of itself, of the store process, and of its workers, which send their own memory. */
async function processGauges(totals: Totals, storeProcess: StoreProcessUsage | undefined): Promise<Values> {
  const gauges = new Map<FlatName, number>([['startedAt', performance.timeOrigin / 1000]])
  const build = { version: VERSION, node: process.version, server: undefined } // only workers load uWebSockets.js
  const processes = [
    { name: 'primary', pid: process.pid, build, memory: memoryUsage() },
    { name: 'store', pid: storeProcess?.pid, build, memory: storeProcess?.memory },
    ...totals.workers().map(({ worker: { pid, build }, number }) => {
      return { name: `worker-${number}`, pid, build, memory: undefined }
    }),
  ]
  const readings = processes.map(async ({ name, pid, build: { version, node, server }, memory }) => {
    if (pid === undefined) return
    gauges.set(`build ${name} ${version} ${node}`, 1)
    if (server !== undefined)
      gauges.set(`serverBuild ${server.name} ${server.version} ${server.sha256} ${server.isKnown}`, 1)
    if (memory !== undefined) {
      gauges.set(`residentBytes ${name}`, memory.rss)
      gauges.set(`heapBytes ${name}`, memory.heapUsed)
    }
    const files = await openFilesOf(pid)
    if (files === undefined) return
    gauges.set(`openFiles ${name}`, files.open)
    gauges.set(`openFilesMax ${name}`, files.max)
  })
  await Promise.all(readings)
  return Object.fromEntries(gauges)
}

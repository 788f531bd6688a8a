/** GET /metrics, for Prometheus. */

import type { Config } from '../config/config.ts'
import { ENDPOINT_NAMES } from '../domain/endpoint.ts'
import { openFilesOf } from '../http/open-files.ts'
import { CONTENT_TYPE, exposition } from '../metrics/exposition.ts'
import { cpuMicroseconds } from '../metrics/stats.ts'
import type { Values } from '../metrics/table.ts'
import type { Totals } from '../metrics/totals.ts'
import { VERSION } from '../version.ts'
import type { AdminRoute, Supervisor } from './admin-server.ts'

export function metricsRoute(
  totals: Totals,
  supervisor: Pick<Supervisor, 'askStats'>,
  { deployment, metricsSites }: Pick<Config, 'deployment' | 'metricsSites'>,
): AdminRoute {
  // A site that never succeeds needs a 0, for an alert that compares with yesterday.
  const zeros = metricsSites.flatMap(site =>
    ENDPOINT_NAMES.map(name => [`siteRequests ${site} ${name} ok`, 0]),
  )
  return {
    path: '/metrics',
    async handle(_request, response) {
      await supervisor.askStats()
      const values: Values = {
        ...Object.fromEntries(zeros),
        ...totals.values(),
        ...(await primaryGauges(totals)),
      }
      values.cpu = (values.cpu ?? 0) + cpuMicroseconds()
      const text = exposition(values, deployment)
      response.writeHead(200, { 'Content-Type': CONTENT_TYPE, 'Content-Length': Buffer.byteLength(text) })
      response.end(text)
    },
  }
}

/** Of the primary process, and of workers seen from outside. */
async function primaryGauges(totals: Totals): Promise<Values> {
  const { rss, heapUsed } = process.memoryUsage()
  const gauges: Values = {
    'residentBytes primary': rss,
    'heapBytes primary': heapUsed,
    startedAt: performance.timeOrigin / 1000,
  }
  const workers = totals
    .workers()
    .map(({ worker: { pid, build }, number }) => ({ name: `worker-${number}`, pid, build }))
  for (const { server } of workers.map(({ build }) => build))
    if (server !== undefined)
      gauges[`serverBuild ${server.name} ${server.version} ${server.sha256} ${server.isKnown}`] = 1
  const primary = { name: 'primary', pid: process.pid, build: { version: VERSION, node: process.version } }
  const readings = [primary, ...workers].map(async ({ name, pid, build }) => {
    gauges[`build ${name} ${build.version} ${build.node}`] = 1
    const files = await openFilesOf(pid)
    if (files === undefined) return // it has ended
    gauges[`openFiles ${name}`] = files.open
    gauges[`openFilesMax ${name}`] = files.max
  })
  await Promise.all(readings)
  return gauges
}

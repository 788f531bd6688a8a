/** GET /metrics: what all workers have counted until now, for Prometheus. */

import cluster from 'node:cluster'
import { CONTENT_TYPE, exposition, type SettingsInUse } from '../metrics/exposition.ts'
import { cpuMicroseconds } from '../metrics/stats.ts'
import type { Totals } from '../metrics/totals.ts'
import { VERSION } from '../version.ts'
import type { AdminRoute } from './admin-route.ts'
import type { Supervisor } from './server.ts'

export function metricsRoute(
  totals: Totals,
  supervisor: Pick<Supervisor, 'askStats' | 'restarts'>,
  lifecycle: { readonly settings: SettingsInUse | undefined },
): AdminRoute {
  return {
    path: '/metrics',
    async handle(_request, response) {
      await supervisor.askStats()
      const { rss, heapUsed } = process.memoryUsage()
      const text = await exposition({
        total: totals.current(),
        workers: totals.workers(),
        restarts: supervisor.restarts(),
        primary: {
          pid: process.pid,
          residentBytes: rss,
          heapBytes: heapUsed,
          cpuMicroseconds: cpuMicroseconds(),
          startedAtSeconds: performance.timeOrigin / 1000,
        },
        pidOf: worker => cluster.workers?.[worker]?.process.pid,
        settings: lifecycle.settings,
        build: { version: VERSION, node: process.version },
      })
      response.writeHead(200, { 'Content-Type': CONTENT_TYPE, 'Content-Length': Buffer.byteLength(text) })
      response.end(text)
    },
  }
}

/** The dashboard on a real admin port, with a history of the test's own. */

import { once } from 'node:events'
import type { Server } from 'node:http'
import { after } from 'node:test'
import { startAdminServer } from '../../src/admin/server.ts'
import { dashboardRoutes } from '../../src/dashboard/routes.ts'
import { SiteNames } from '../../src/dashboard/site-names.ts'
import { createLogger } from '../../src/log/logger.ts'
import type { History } from '../../src/metrics/history.ts'
import type { ServiceState } from '../../src/metrics/history-view.ts'
import { freePort } from '../harness/ports.ts'

export const WELL: ServiceState = {
  version: '0.1.0',
  isHealthy: true,
  isReady: true,
  workers: 2,
  workersRunning: 2,
  workersWithStore: 2,
  crashes: 0,
  underWay: 0,
}

const running = new Set<Server>()
after(() => {
  for (const server of running) server.close().closeAllConnections()
})

export interface Served {
  readonly url: string
  stop(): Promise<void>
}

/** Needs the built page: its script is bundled. */
export async function serveHistory(
  history: History,
  state: () => ServiceState = () => WELL,
): Promise<Served> {
  const adminPort = await freePort()
  const supervisor = {
    isHealthy: () => state().isHealthy,
    isReady: () => state().isReady,
    askStats: async () => {},
    restarts: () => ({ crash: 0, hang: 0, roll: 0 }),
    workersWanted: () => state().workers,
  }
  const siteNames = new SiteNames(async () => new Map())
  const routes = dashboardRoutes(
    { history, siteNames, state },
    new URL('../../dist/dashboard/', import.meta.url),
  )
  const server = await startAdminServer(
    { adminHost: '127.0.0.1', adminHosts: [], adminPort },
    supervisor,
    routes,
    createLogger('silent'),
  )
  running.add(server!)
  return {
    url: `http://127.0.0.1:${adminPort}`,
    async stop() {
      running.delete(server!)
      const closed = once(server!, 'close')
      server!.close().closeAllConnections()
      await closed
    },
  }
}

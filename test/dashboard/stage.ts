/** A dashboard on a real admin port with a history that the test supplies. */

import { startAdminServer } from '../../src/admin/admin-server.ts'
import { dashboardRoutes } from '../../src/dashboard/dashboard.ts'
import type { History } from '../../src/dashboard/history.ts'
import type { ServiceState } from '../../src/dashboard/service-state.ts'
import { createLogger } from '../../src/log/logger.ts'
import { freePort } from '../harness/ports.ts'
import { leftovers } from '../harness/processes.ts'

/** Nothing to report. */
export const WELL: ServiceState = {
  isHealthy: true,
  isReady: true,
  workers: 2,
  workersRunning: 2,
  workersWithStore: 2,
  isStoreEmbedded: false,
  sitesLost: 0,
  hosts: ['a', 'b'].map(name => ({ name: `${name}:8080`, version: '0.1.0', startedAt: 0, workers: 2 })),
  differences: [],
  backends: [],
  isProxyUntrusted: false,
  clockApartSeconds: 0.9,
  evictedKeys: 0,
  isReloadDone: true,
  storeCauses: [],
  workerCrashes: 0,
}

/** Returns the URL of an admin port that serves the history until the test file ends. The page must be built first (dist/dashboard). */
export async function serveHistory(history: History, state: () => ServiceState = () => WELL) {
  const adminPort = await freePort()
  const supervisor = {
    isHealthy: () => state().isHealthy,
    isReady: () => state().isReady,
    askStats: async () => {},
    workersWanted: () => state().workers,
  }
  const page = new URL('../../dist/dashboard/', import.meta.url)
  const isUnknown = () => false // no site is
  const routes = dashboardRoutes(history, isUnknown, state, page)
  const place = { adminHost: '127.0.0.1', adminHosts: [], adminPort }
  const server = await startAdminServer(place, supervisor, routes, createLogger('silent'))
  leftovers.add({ stop: async () => server!.close().closeAllConnections() })
  return `http://127.0.0.1:${adminPort}`
}

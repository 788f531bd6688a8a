/** The service in the test's process, as one worker beside its store: Stryker (test/mutants.config.mjs) sees only that process. */

import { loadConfig } from '../../src/config/config.ts'
import { createLogger } from '../../src/log/logger.ts'
import { startServer } from '../../src/server.ts'
import { serveStore } from './embedded.ts'

/** @returns ends the service */
export async function serveInProcess(env: Readonly<Record<string, string>>): Promise<() => Promise<void>> {
  const config = loadConfig({ POWGATE_DEMO: 'off', ...env })
  const store = await serveStore(config.dataDir)
  const workerIndex = 0
  const server = await startServer(config, createLogger('silent'), workerIndex)
  return async () => {
    await server.drain()
    await store.close({ saves: false })
  }
}

/** The service in this process, as one worker beside its store: for mutants, which are told apart by the lines that a test reaches. */

import { loadConfig } from '../../src/config/config.ts'
import { createLogger } from '../../src/log/logger.ts'
import { startServer } from '../../src/server.ts'
import { serveStore } from './embedded.ts'

/** @returns ends it */
export async function serveInProcess(env: Readonly<Record<string, string>>): Promise<() => Promise<void>> {
  const config = loadConfig({ POWGATE_DEMO: 'off', ...env })
  const store = await serveStore(config.dataDir)
  const server = await startServer(config, createLogger('silent'), 0)
  return async () => {
    await server.drain()
    await store.close(false)
  }
}

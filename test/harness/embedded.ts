/** The embedded store without a process of its own: its server runs in the test's process, as do its clients. */

import { socketTarget } from '../../src/config/redis.ts'
import { StoreClient, type StoreClientOptions } from '../../src/store/client/store-client.ts'
import { socketPath } from '../../src/store/embedded/data-dir.ts'
import { type ServerOptions, StoreServer } from '../../src/store/embedded/server.ts'

export function serveStore(dataDir: string, options: Partial<ServerOptions> = {}): Promise<StoreServer> {
  return StoreServer.open({ dataDir, stateBytesMax: 2 ** 30, who: 'the test', ...options })
}

/** With a deadline that is long enough for a busy machine. */
export async function openEmbedded(
  dataDir: string,
  options: Partial<StoreClientOptions> = {},
): Promise<StoreClient> {
  const usual = { keyPrefix: '', clusterShards: 1, deadlineMs: 5000, openTimeoutMs: 60_000 }
  const store = new StoreClient({ target: socketTarget(socketPath(dataDir)), ...usual, ...options })
  await store.open()
  return store
}

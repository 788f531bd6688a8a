/** Opens the configured store, or only its sites. */

import type { Config } from '../config/config.ts'
import { socketTarget } from '../config/redis.ts'
import { connect } from './client/connection.ts'
import { untilUsable } from './client/inspection.ts'
import { StoreClient, type StoreClientOptions, sitesOver } from './client/store-client.ts'
import { prepareDataDir, socketPath } from './embedded/data-dir.ts'
import { A_COMMAND, isServed } from './embedded/own-socket.ts'
import type { StoreServer } from './embedded/server.ts'
import type { SiteStore } from './store.ts'

/** A command that changes nothing gives this, which makes the store read-only, and is called with what a start would warn of. */
type Trial = (warning: string) => void
type OpenSites = SiteStore & { close(): Promise<void> }

type StoreConfig = Pick<Config, 'redis' | 'redisPrefix' | 'redisShards' | 'dataDir' | 'stateBytesMax'>

/** Calls that no visitor waits for may take this long: 20,000 sites in one `apply` take an idle machine over a second. */
const COMMAND_MS = 10_000
/** The service's own calls about sites may take this long. */
const SERVICE_MS = 2000

/** Makes the store's client, which begins to connect; its `open` waits until the store answers. @throws OperatorError */
export function createStore(
  config: StoreConfig,
  options: Omit<StoreClientOptions, keyof ReturnType<typeof locationOf>>,
): StoreClient {
  return new StoreClient({ ...locationOf(config), ...options })
}

function locationOf({ redis, redisPrefix, redisShards, dataDir }: StoreConfig) {
  const target = redis ?? socketTarget(socketPath(dataDir))
  return { target, keyPrefix: redisPrefix, clusterShards: redisShards }
}

/** Opens the sites for a command: the running service's; without one, this process becomes the embedded store. @throws OperatorError */
export async function openSiteStore(config: StoreConfig, trial?: Trial): Promise<OpenSites> {
  if (config.redis !== undefined) return reachSites(config)
  // The import takes long, so it comes first: `isOwned` also finds a service that takes the directory during it.
  const { StoreServer } = await import('./embedded/server.ts')
  return (await isOwned(config.dataDir)) ? reachSites(config) : serveSites(StoreServer, config, trial)
}

/** Opens the sites of a store that runs, for commands, and for the primary process, which must never become it. @throws OperatorError */
export async function reachSites(config: StoreConfig): Promise<OpenSites> {
  const { target } = locationOf(config)
  const connection = connect(target, COMMAND_MS)
  const sites = sitesOver(connection, locationOf(config))
  try {
    await untilUsable(connection, { target }, () => sites.changesSince(undefined))
  } catch (error) {
    connection.close()
    throw error
  }
  return Object.assign(sites, { close: async () => connection.close() })
}

/** True if a service has the directory's socket. If the directory cannot be used, the error names that rather than the socket. */
async function isOwned(dataDir: string): Promise<boolean> {
  try {
    return await isServed(socketPath(dataDir))
  } catch (error) {
    prepareDataDir(dataDir, { makes: false })
    throw error
  }
}

/** Connects the running service to its store, for operations on sites. They reject until it is reached. */
export function connectSites(config: StoreConfig): OpenSites {
  const location = locationOf(config)
  const connection = connect(location.target, SERVICE_MS)
  return Object.assign(sitesOver(connection, location), { close: async () => connection.close() })
}

/** Makes this process the store until `close`, so that no service starts beside the command. Waits for an owner's end (own-socket.ts). */
async function serveSites(
  Server: typeof StoreServer,
  { dataDir, stateBytesMax }: StoreConfig,
  trial?: Trial,
): Promise<OpenSites> {
  prepareDataDir(dataDir, { makes: false })
  const who = `${A_COMMAND} (process ${process.pid})`
  const warn = trial ?? ((text: string) => process.stderr.write(`${text}\n`))
  const tell = (level: string, text: string) => level === 'warn' && warn(text)
  const isReadOnly = trial !== undefined
  const server = await Server.open({ dataDir, stateBytesMax, who, isCommand: true, isReadOnly, tell })
  const { sites } = server
  // A command has no state to save, except where `forget` changed the saved one.
  return Object.assign(sites, { close: () => server.close({ saves: sites.hasForgotten }) })
}

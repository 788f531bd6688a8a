import { randomInt } from 'node:crypto'
import { connect as connectSocket } from 'node:net'
import type { Config } from '../../config/config.ts'
import { socketTarget } from '../../config/redis.ts'
import { connect } from '../client/connection.ts'
import { untilUsable } from '../client/inspection.ts'
import type { SiteStore } from '../store.ts'
import { socketPath } from './data-dir.ts'
import { StoreServer } from './server.ts'
import type { SiteOperation } from './sites.ts'
import { sitesBy, socketSites } from './socket-sites.ts'

/** No visitor waits, and 20,000 sites in one `apply` take an idle machine over a second. */
const [PATIENT_MS, OPEN_MS] = [10_000, 5000]

/**
 * Those of the running service; without one, this process is the store meanwhile, so that no service starts beside it.
 *
 * @throws StoreSetupError
 */
export async function openEmbeddedSites({
  dataDir,
  stateBytesMax,
}: Pick<Config, 'dataDir' | 'stateBytesMax'>): Promise<SiteStore & { close(): Promise<void> }> {
  const path = socketPath(dataDir)
  if (!(await isServed(path))) {
    const who = `a command (process ${process.pid})`
    const server = await StoreServer.open({ dataDir, stateBytesMax, who })
    const { sites, state } = server
    // Workers of a killed service may ask too. What they redeem here is not kept, so no token of the saved state is accepted.
    const savedEpoch = state.epoch
    state.epoch = randomInt(2 ** 32)
    const ask = (name: SiteOperation, args: readonly unknown[]) =>
      (sites[name] as (...args: readonly unknown[]) => Promise<unknown>)(...args)
    const close = () => {
      state.epoch = savedEpoch
      return server.close(sites.hasForgotten)
    }
    return { ...sitesBy(ask), close }
  }
  const target = socketTarget(path)
  const connection = connect(target, PATIENT_MS)
  const sites = socketSites(connection)
  try {
    await untilUsable(connection, { target, openMs: OPEN_MS }, () => sites.changesSince(undefined))
  } catch (error) {
    connection.close()
    throw error
  }
  return { ...sites, close: async () => connection.close() }
}

function isServed(path: string): Promise<boolean> {
  return new Promise(done => {
    const socket = connectSocket(path, () => {
      socket.destroy()
      done(true)
    })
    socket.on('error', (error: NodeJS.ErrnoException) => done(error.code === 'EACCES'))
  })
}

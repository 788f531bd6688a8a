import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { socketTarget } from '../../src/config/redis.ts'
import { KEPT_MS_MAX, keptMs } from '../../src/domain/meters.ts'
import { socketPath } from '../../src/store/embedded/data-dir.ts'
import { type ServerOptions, StoreServer } from '../../src/store/embedded/server.ts'
import { socketSites } from '../../src/store/embedded/socket-sites.ts'
import { RedisStore, type RedisStoreOptions } from '../../src/store/redis/store.ts'
import { storeConformance } from './conformance.ts'
import { openTwice, type TestStore } from './harness.ts'

function serve(dataDir: string, options: Partial<ServerOptions> = {}): Promise<StoreServer> {
  return StoreServer.open({ dataDir, stateBytesMax: 2 ** 30, who: 'the test', ...options })
}

async function clientOf(dataDir: string, options: Partial<RedisStoreOptions> = {}): Promise<RedisStore> {
  const usual = { keyPrefix: '', clusterShards: 1, deadlineMs: 5000, openMs: 60_000, sitesOf: socketSites }
  const store = new RedisStore({ target: socketTarget(socketPath(dataDir)), ...usual, ...options })
  await store.open()
  return store
}

async function make(): Promise<TestStore> {
  const dataDir = mkdtempSync(join(tmpdir(), 'powgate-embedded-'))
  let shared = { now: 0 }
  const now = () => shared.now
  const server = await serve(dataDir, { clocks: { monotonicMs: now, wallMs: now } })
  const opened = await openTwice(
    clock => {
      shared = clock
      return clientOf(dataDir, { clock: () => clock.now })
    },
    async () => {
      await server.close(false)
      rmSync(dataDir, { recursive: true, force: true })
    },
  )
  const expires = async (name: string) => {
    const key = name.startsWith('e:') ? name : `e:${name}`
    const meter = server.state.meters.get(key)
    if (meter === undefined) return -1
    const keepMs = name.startsWith('e:born') ? KEPT_MS_MAX : keptMs(meter)
    return (meter.atMs + keepMs - opened.clock.now) / 1000
  }
  return { ...opened, expires }
}

storeConformance('embedded', make)

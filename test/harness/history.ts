/** Quiet hours that a service has behind it: in its first hour whatever comes is learned, and nothing is too much. */

import { Redis } from 'ioredis'
import { AddressTags } from '../../src/domain/address-tags.ts'
import { Keyring } from '../../src/domain/keyring.ts'
import { METER_BYTES, writeMeter } from '../../src/domain/meters.ts'
import { openEmbedded } from './embedded.ts'
import type { TestService } from './service.ts'

const QUIET_MS = 7_200_000
const KEPT_SECONDS = 600

/** Two of them: the store's first proof came then. */
export async function seedQuietHours({ redis: server, dataDir, env }: TestService): Promise<void> {
  const nowMs = Date.now()
  const { signing } = new Keyring(env.POWGATE_SECRETS!.split(','))
  const firstProofs = new AddressTags(signing).firstProofNames
  if (server === undefined) {
    const store = await openEmbedded(dataDir, { clock: () => nowMs - QUIET_MS })
    const storeEpoch = store.requests.epochOf('')!
    const spend = { nonce: '0'.repeat(32), storeEpoch, expiresAtMs: nowMs }
    const metering = { firstProofs, meters: ['e:nobody'], free: [1], counts: true }
    const limits = { addressKey: 'seed', siteTag: 1, addressLimit: 1, siteLimit: 1 }
    await new Promise(done =>
      store.requests.admitSolution({ ...limits, metering, failed: false, spend }, done),
    )
    return store.close()
  }
  const record = Buffer.alloc(METER_BYTES)
  writeMeter(record, 0, { atMs: nowMs, recent: 0, usual: nowMs - QUIET_MS })
  const redis = new Redis(server.url)
  for (const name of firstProofs) await redis.set(`pg:{0}:${name}`, record, 'EX', KEPT_SECONDS)
  redis.disconnect()
}

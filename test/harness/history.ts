/** Makes a service's store two hours old: in its first hour all proofs count as usual (domain/meters.ts), and nobody pays more. */

import { Redis } from 'ioredis'
import { AddressTags } from '../../src/domain/address-tags.ts'
import { Keyring } from '../../src/domain/keyring.ts'
import { METER_BYTES, writeMeter } from '../../src/domain/meters.ts'
import { openEmbedded } from './embedded.ts'
import type { TestService } from './service.ts'

const QUIET_MS = 7_200_000
/** Longer than any test that needs it. */
const KEPT_SECONDS = 600

/** Records that the store's first proof came two hours ago: a store is as old as its first proof. */
export async function seedQuietHours({ redis: server, dataDir, env }: TestService): Promise<void> {
  const nowMs = Date.now()
  const { signing } = new Keyring(env.POWGATE_SECRETS!.split(','))
  const firstProofs = new AddressTags(signing).firstProofNames
  if (server === undefined) {
    // A proof of nobody, by a client whose clock is two hours slow.
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
  writeMeter(record, 0, { atMs: nowMs, recent: 0, usual: nowMs - QUIET_MS }) // `usual` is the first proof's time: see Meter
  const redis = new Redis(server.url)
  for (const name of firstProofs) await redis.set(`pg:{0}:${name}`, record, 'EX', KEPT_SECONDS)
  redis.disconnect()
}

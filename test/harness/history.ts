/** Makes a service's store two hours old: in its first hour all proofs count as usual (domain/meters.ts), and nobody pays more. */

import { randomBytes } from 'node:crypto'
import { loadConfig } from '../../src/config/config.ts'
import { socketTarget } from '../../src/config/redis.ts'
import { AddressTags } from '../../src/domain/address-tags.ts'
import { Keyring } from '../../src/domain/keyring.ts'
import { StoreClient } from '../../src/store/client/store-client.ts'
import { socketPath } from '../../src/store/embedded/data-dir.ts'
import type { SolutionAdmission } from '../../src/store/store.ts'
import { eventually } from './eventually.ts'
import type { TestService } from './service.ts'

const QUIET_MS = 7_200_000

/** Adds a proof of nobody, by a client whose clock is two hours slow: a store is as old as its first proof. */
export async function seedQuietHours({ env }: TestService): Promise<void> {
  const nowMs = Date.now()
  const { redis, redisPrefix: keyPrefix, redisShards: clusterShards, dataDir, secrets } = loadConfig(env)
  const target = redis ?? socketTarget(socketPath(dataDir))
  const options = { target, keyPrefix, clusterShards, deadlineMs: 5000, openTimeoutMs: 60_000 }
  const store = new StoreClient({ ...options, clock: () => nowMs - QUIET_MS })
  await store.open()
  const { firstProofNames: firstProofs } = new AddressTags(new Keyring(secrets).signing)
  const metering = { firstProofs, meters: ['e:nobody'], free: [1], counts: true }
  const limits = { addressKey: 'seed', siteTag: 1, addressLimit: 100, siteLimit: 100 }
  // A worker of the service that sees the slow clock draws a new epoch, in which the seed of the epoch before counts nothing.
  await eventually(60_000, 'the seed counts', async () => {
    const nonce = randomBytes(16).toString('hex')
    const spend = { nonce, storeEpoch: store.requests.epochOf('')!, expiresAtMs: nowMs }
    const seed = { ...limits, metering, failed: false, spend }
    const answer = await new Promise<SolutionAdmission>(done => store.requests.admitSolution(seed, done))
    return 'nonce' in answer && answer.nonce === 'spent'
  })
  await store.close()
}

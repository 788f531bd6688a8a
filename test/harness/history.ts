/**
 * Makes a service's store two hours old, for tests of what networks pay: in a store's first hour all proofs count as usual
 * (domain/meters.ts), so nobody pays more. A store is as old as its first proof, so one proof of two hours ago is enough.
 */

import { randomBytes } from 'node:crypto'
import { loadConfig } from '../../src/config/config.ts'
import { socketTarget } from '../../src/config/redis.ts'
import { AddressTags } from '../../src/domain/address-tags.ts'
import { Keyring } from '../../src/domain/keyring.ts'
import { StoreClient } from '../../src/store/client/store-client.ts'
import { socketPath } from '../../src/store/embedded/data-dir.ts'
import type { SolutionAdmission } from '../../src/store/store.ts'
import { eventually, PATIENCE_MS } from './eventually.ts'
import type { TestService } from './service.ts'

/** No test has this address, nor the site 1 with the meter `e:nobody`. */
const addressKey = 'seed'

/** Adds that proof by a client whose clock is two hours slow. */
export async function seedQuietHours({ env }: TestService): Promise<void> {
  const nowMs = Date.now()
  const { redis, redisPrefix: keyPrefix, redisShards: clusterShards, dataDir, secrets } = loadConfig(env)
  const target = redis ?? socketTarget(socketPath(dataDir))
  const options = { target, keyPrefix, clusterShards, deadlineMs: 5000, openTimeoutMs: PATIENCE_MS }
  const store = new StoreClient({ ...options, clock: () => nowMs - 7_200_000 })
  await store.open()
  const { firstProofNames: firstProofs } = new AddressTags(new Keyring(secrets).signing)
  const metering = { firstProofs, meters: ['e:nobody'], free: [1], counts: true }
  const visit = { addressKey, siteTag: 1, addressLimit: 100, siteLimit: 100, metering, failed: false }
  // A worker that finds this client's time noted takes it for a clock that was set, and draws a new epoch (lua/epoch.lua). A proof
  // of the epoch before spends nothing, so another one is sent.
  await eventually(PATIENCE_MS, 'the proof counts', async () => {
    const nonce = randomBytes(16).toString('hex')
    const storeEpoch = store.requests.epochOf(addressKey)!
    const solution = { ...visit, spend: { nonce, storeEpoch, expiresAtMs: nowMs } }
    const answer = await new Promise<SolutionAdmission>(done => store.requests.admitSolution(solution, done))
    return 'nonce' in answer && answer.nonce === 'spent'
  })
  await store.close()
}

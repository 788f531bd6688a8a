/**
 * Reads the epochs of a Redis Cluster. Each shard has an epoch of its own, and a nonce is bound to two: its address's and
 * its site's.
 */

import { loadConfig } from '../../src/config/config.ts'
import { type Address, limitKey } from '../../src/domain/address.ts'
import { createStore } from '../../src/store/open.ts'

export interface Epochs {
  of(address: Address, siteKey: string): number
  close(): Promise<void>
}

const DEADLINE_MS = 2000

/** @param env settings of the service whose store it is */
export async function openEpochs(env: Readonly<Record<string, string>>): Promise<Epochs> {
  const config = loadConfig(env)
  const store = await createStore(config, { sweeps: false, deadlineMs: DEADLINE_MS })
  try {
    await store.open()
  } catch (error) {
    await store.close()
    throw error
  }
  return {
    of: (address, siteKey) => {
      const epoch = store.nonceEpoch(limitKey(address, config.ipv6PrefixBits), siteKey)
      if (epoch === undefined) throw new Error('the store has not told its epochs')
      return epoch
    },
    close: () => store.close(),
  }
}

/** Quiet hours that a service has behind it: in its first hour whatever comes is learned, and nothing is too much. */

import { Redis } from 'ioredis'
import { parseAddress } from '../../src/addresses/address.ts'
import { AddressTags } from '../../src/domain/address-tags.ts'
import { Keyring } from '../../src/domain/keyring.ts'
import { METER_BYTES, writeMeter } from '../../src/domain/meters.ts'
import { POLICY } from '../../src/domain/policy.ts'
import { openState } from '../../src/store/embedded/environment.ts'
import { SYSTEM_CLOCKS } from '../../src/store/embedded/requests.ts'
import type { TestService } from './service.ts'

const QUIET_MS = 7_200_000
const KEPT_SECONDS = 600

/** Two of them: the store's first proof came then. */
export async function seedQuietHours({ redis: server, dataDir, env }: TestService): Promise<void> {
  const nowMs = Date.now()
  const tags = new AddressTags(new Keyring(env.POWGATE_SECRETS!.split(',')).signing, POLICY)
  const [name] = tags.metersOf('', parseAddress('192.0.2.1')!, undefined)
  const record = Buffer.alloc(METER_BYTES)
  writeMeter(record, 0, { atMs: nowMs, recent: 0, usual: nowMs - QUIET_MS })
  if (server === undefined) {
    const { file, windows } = openState(dataDir)
    const deadFrom = Buffer.alloc(4)
    deadFrom.writeUInt32BE(Math.ceil(SYSTEM_CLOCKS.monotonicMs() / 1000) + KEPT_SECONDS)
    file.write(() => windows.putSync(Buffer.from(name!), Buffer.concat([deadFrom, record])))
    return file.close()
  }
  const redis = new Redis(server.url)
  await redis.set(`pg:{0}:${name}`, record, 'EX', KEPT_SECONDS)
  redis.disconnect()
}

/** Quiet hours that a service has behind it: in its first hour whatever comes is learned, and nothing is too much. */

import { Redis } from 'ioredis'
import { AddressTags } from '../../src/domain/address-tags.ts'
import { Keyring } from '../../src/domain/keyring.ts'
import { METER_BYTES, meterNames, newMeter, writeMeter } from '../../src/domain/meters.ts'
import { openState } from '../../src/store/embedded/environment.ts'
import { SYSTEM_CLOCKS } from '../../src/store/embedded/requests.ts'
import type { TestService } from './service.ts'

const QUIET_MS = 7_200_000
const KEPT_SECONDS = 600

/**
 * Two of them, of all traffic and of a site.
 *
 * @param recent proofs of the last minute, after those hours
 */
export async function seedQuietHours(
  { redis: server, dataDir, env }: TestService,
  siteKey: string,
  recent = 0,
): Promise<void> {
  const nowMs = Date.now()
  const meter = { ...newMeter(nowMs - QUIET_MS), atMs: nowMs, fast: recent }
  const names = new AddressTags(new Keyring(env.POWGATE_SECRETS!.split(',')).signing).sharedOf(
    meterNames(siteKey, false),
  )
  const record = Buffer.alloc(METER_BYTES)
  writeMeter(record, 0, meter)
  if (server === undefined) {
    const { file, windows } = openState(dataDir)
    const deadFrom = Buffer.alloc(4)
    deadFrom.writeUInt32BE(Math.ceil(SYSTEM_CLOCKS.monotonicMs() / 1000) + KEPT_SECONDS)
    file.write(() => {
      for (const name of names) windows.putSync(Buffer.from(name), Buffer.concat([deadFrom, record]))
    })
    return file.close()
  }
  const redis = new Redis(server.url)
  for (const name of names) await redis.set(`pg:{0}:${name}`, record, 'EX', KEPT_SECONDS)
  redis.disconnect()
}

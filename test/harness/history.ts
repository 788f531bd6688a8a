/** Quiet hours that a service has behind it: in its first hour whatever comes is learned, and nothing is too much. */

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { ALL, SLOT_BYTES } from '../../src/domain/networks.ts'
import type { TestService } from './service.ts'

const QUIET_MS = 7_200_000

/** Two of them: the first slot of src/domain/networks.ts, and the load of a site as lua/exchange-load-n.lua keeps it. */
export async function seedQuietHours(
  { redis: server, dataDir }: TestService,
  siteKey: string,
): Promise<void> {
  const [since, now] = [Date.now() - QUIET_MS, Date.now()]
  const slot = Buffer.alloc(SLOT_BYTES)
  slot.writeUInt32BE(ALL, 0)
  slot.writeDoubleBE(since, 4)
  slot.writeDoubleBE(now, 12)
  if (server === undefined) return writeFileSync(join(dataDir, 'networks'), slot)
  const load = Buffer.alloc(48)
  load.writeDoubleBE(since, 0)
  load.writeDoubleBE(now, 8)
  const redis = new Redis(server.url)
  await redis.set('pg:{load}:networks', slot)
  await redis.set(`pg:{load}:${siteKey}`, load)
  redis.disconnect()
}

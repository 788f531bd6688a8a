/**
 * Measures what Redis pays for keys that expire. At a steady rate, each request pays this once for each key that it wrote.
 * Lifetimes are short here, so that the cost stands apart from all other costs.
 */

import type { Redis } from 'ioredis'
import type { RedisServer } from '../../test/harness/redis.ts'
import { processUsage } from '../support/cpu.ts'
import type { Sample } from './figures.ts'

/**
 * Some 5,000 visits a second. The rate matters: Redis looks at some keys ten times a second, and goes on while over 10 %
 * of them have expired, so it always leaves some and looks at many for each that it removes.
 */
const KEYS_PER_MS = 15
/** Time to cut all lives short, before the first ends, on a machine that may be busy. */
const [AHEAD_MS, AHEAD_MS_PER_KEY] = [2000, 0.05]
const IDLE_MS = 500
const POLL_MS = 50
const GIVE_UP_MS = 60_000
const SCAN_COUNT = 1000

/** @param isSpread whether the lives end one after another, as at a steady rate, or all at once */
export async function expireRedis(server: RedisServer, admin: Redis, isSpread: boolean): Promise<Sample> {
  const idleShare = await idleCpuShare(server)
  const keys = await mortalKeys(admin)
  const firstAtMs = Date.now() + AHEAD_MS + keys * AHEAD_MS_PER_KEY
  await shortenLives(admin, firstAtMs, isSpread ? 1 / KEYS_PER_MS : 0)
  if (Date.now() >= firstAtMs) throw new Error('there are too many keys to cut their lives short in time')
  await sleep(firstAtMs - Date.now() - 10)
  const [startMs, { cpuMs }] = [performance.now(), processUsage(server.pid)]
  while ((await mortalKeys(admin)) > 0) {
    if (performance.now() - startMs > GIVE_UP_MS) throw new Error('the keys do not expire')
    await sleep(POLL_MS)
  }
  const tookMs = performance.now() - startMs
  const spentMs = processUsage(server.pid).cpuMs - cpuMs - idleShare * tookMs
  return { keys, tookMs, expiryUs: (spentMs / keys) * 1000, idleShare }
}

async function idleCpuShare(server: RedisServer): Promise<number> {
  const [startMs, { cpuMs }] = [performance.now(), processUsage(server.pid)]
  await sleep(IDLE_MS)
  return (processUsage(server.pid).cpuMs - cpuMs) / (performance.now() - startMs)
}

/** How many keys have an end. */
async function mortalKeys(admin: Redis): Promise<number> {
  return Number(/^db0:keys=\d+,expires=(\d+)/m.exec(await admin.info('keyspace'))?.[1] ?? 0)
}

async function shortenLives(admin: Redis, firstAtMs: number, apartMs: number): Promise<void> {
  let [cursor, endAtMs] = ['0', firstAtMs]
  do {
    const [next, keys] = await admin.scan(cursor, 'COUNT', SCAN_COUNT)
    const pipeline = admin.pipeline()
    for (const key of keys) pipeline.pexpireat(key, Math.floor((endAtMs += apartMs)), 'XX')
    await pipeline.exec()
    cursor = next
  } while (cursor !== '0')
}

function sleep(ms: number): Promise<void> {
  return new Promise(resolve => setTimeout(resolve, Math.max(0, ms)))
}

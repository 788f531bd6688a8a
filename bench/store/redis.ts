/** A redis-server for one bench, with its own counters (INFO, SLOWLOG) and with keys that expire. */

import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { parseRedisUrl } from '../../src/config/redis.ts'
import { RedisStore } from '../../src/store/redis/store.ts'
import {
  countsBetween,
  infoField,
  openRedisCounters,
  type RedisCounters,
} from '../../test/harness/load/redis-counters.ts'
import { processUsage } from '../../test/harness/measure.ts'
import { RedisServer } from '../../test/harness/redis.ts'
import type { Drive } from './drive.ts'
import { type Sample, type Subject, type SubjectOptions, untilGone } from './figures.ts'

/** As in bench/http: a pause of a busy machine must not become an outage. */
const DEADLINE_MS = 2000
const OPEN_MS = 5000

export async function startRedis({ clock }: SubjectOptions): Promise<Subject> {
  const server = await RedisServer.start()
  const admin = new Redis(server.port, '127.0.0.1')
  const store = new RedisStore({
    target: parseRedisUrl(server.url)!,
    keyPrefix: 'powgate',
    clusterShards: 16,
    deadlineMs: DEADLINE_MS,
    openMs: OPEN_MS,
    ...(clock === undefined ? {} : { clock }),
  })
  let counters: RedisCounters | undefined
  const stop = async () => {
    counters?.close()
    await store.close()
    admin.disconnect()
    await server.stop()
  }
  try {
    await store.open()
    counters = await openRedisCounters([server.port])
  } catch (error) {
    await stop()
    throw error
  }
  return {
    store: store.requests,
    measured: pass => measured(server, counters, pass),
    holding: passes => holding(admin, passes),
    stateBytes: async () => infoField(await admin.info('memory'), 'used_memory'),
    stateKeys: () => admin.dbsize(),
    expired: async isSpread => {
      await store.close() // Its probes would count too.
      return await expireRedis(server, admin, isSpread)
    },
    stop,
  }
}

async function measured(
  server: RedisServer,
  counters: RedisCounters,
  pass: () => Promise<Drive>,
): Promise<Sample> {
  const before = await counters.read()
  const { cpuMs } = processUsage(server.pid)
  const { operations, elapsedMs, cpuMs: clientMs } = await pass()
  const redisMs = processUsage(server.pid).cpuMs - cpuMs
  const after = await counters.read()
  const { scriptCalls, scriptUs, commands, inBytes, outBytes } = countsBetween(before, after)
  return {
    redisUs: (redisMs / operations) * 1000,
    scriptUs: scriptUs / operations,
    scriptCallUs: scriptUs / scriptCalls,
    commands: commands / operations,
    operationsPerCall: operations / scriptCalls,
    bytesIn: inBytes / operations,
    bytesOut: outBytes / operations,
    clientUs: (clientMs / operations) * 1000,
    wallUs: (elapsedMs / operations) * 1000,
    expiredKeys: after.expiredKeys,
  }
}

/** More entries than calls of any pass. */
const SLOWLOG_LENGTH = 1_000_000

async function holding(admin: Redis, passes: () => Promise<void>): Promise<Sample> {
  await admin.config('SET', 'slowlog-max-len', SLOWLOG_LENGTH)
  await admin.config('SET', 'slowlog-log-slower-than', 0)
  await admin.slowlog('RESET')
  await passes()
  await admin.config('SET', 'slowlog-log-slower-than', -1)
  const callsUs = await scriptCallsUs(admin)
  if (callsUs.length === 0) throw new Error('the slow log holds no script call')
  return {
    longestCallUs: callsUs.reduce((longest, us) => Math.max(longest, us)),
    callsOver1Ms: callsUs.filter(us => us > 1000).length,
  }
}

/** How long the script calls in the slow log took. */
async function scriptCallsUs(admin: Redis): Promise<number[]> {
  type Entry = [id: number, at: number, us: number, args: readonly string[], ...rest: unknown[]]
  const entries = (await admin.slowlog('GET', -1)) as Entry[]
  return entries.filter(([, , , [name]]) => /^(eval|fcall)/i.test(name!)).map(([, , us]) => us)
}

/**
 * Some 5,000 visits a second. The rate matters: Redis samples keys ten times a second, and goes on while over 10 % of a
 * sample have expired. So some expired keys always stay, and Redis examines many keys for each one that it removes.
 */
const KEYS_PER_MS = 15
/** Time to cut all lives short, before the first ends, on a machine that may be busy. */
const [AHEAD_MS, AHEAD_MS_PER_KEY] = [2000, 0.05]
const SCAN_COUNT = 1000

/**
 * Lets all keys that can expire do so: what Redis pays for that, a steady load pays once for each key that it wrote. Lives are
 * cut short, so that the cost stands apart from all other costs.
 *
 * @param isSpread whether the lives end one after another, as at a steady rate, or all at once
 */
async function expireRedis(server: RedisServer, admin: Redis, isSpread: boolean): Promise<Sample> {
  const keys = await mortalKeys(admin)
  const firstAtMs = Date.now() + AHEAD_MS + keys * AHEAD_MS_PER_KEY
  await shortenLives(admin, firstAtMs, isSpread ? 1 / KEYS_PER_MS : 0)
  if (Date.now() >= firstAtMs) throw new Error('there are too many keys to cut their lives short in time')
  await sleep(Math.max(0, firstAtMs - Date.now() - 10))
  return await untilGone(
    () => mortalKeys(admin),
    () => processUsage(server.pid).cpuMs,
  )
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

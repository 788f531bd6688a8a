/** A redis-server for one bench, with its own counters. */

import { Redis } from 'ioredis'
import { parseRedisUrl } from '../../src/config/redis-target.ts'
import { RedisStore } from '../../src/store/redis/store.ts'
import { RedisServer } from '../../test/harness/redis.ts'
import { processUsage } from '../support/cpu.ts'
import type { Drive } from './drive.ts'
import type { Sample } from './figures.ts'
import { pinging } from './ping.ts'
import { expireRedis } from './redis-expiry.ts'
import { countersOf, field, longestCall } from './redis-info.ts'
import type { Subject, SubjectOptions } from './subject.ts'

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
  const stop = async () => {
    await store.close()
    admin.disconnect()
    await server.stop()
  }
  try {
    await store.open()
  } catch (error) {
    await stop()
    throw error
  }
  return {
    store,
    cpuMs: () => ownCpuMs() + processUsage(server.pid).cpuMs,
    measured: pass => measured(server, admin, pass),
    holding: passes => holding(server, admin, passes),
    stateBytes: async () => field(await admin.info('memory'), 'used_memory'),
    stateKeys: () => admin.dbsize(),
    expired: async isSpread => {
      await store.close() // Its probes would count too.
      return await expireRedis(server, admin, isSpread)
    },
    stop,
  }
}

function ownCpuMs(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}

async function measured(server: RedisServer, admin: Redis, pass: () => Promise<Drive>): Promise<Sample> {
  const { counters: before, replyBytes } = await countersOf(admin)
  const { cpuMs } = processUsage(server.pid)
  const { operations, elapsedMs, cpuMs: clientMs } = await pass()
  const redisMs = processUsage(server.pid).cpuMs - cpuMs
  const { counters: after } = await countersOf(admin)
  const scriptCalls = after.scriptCalls - before.scriptCalls
  const scriptUs = after.scriptUs - before.scriptUs
  return {
    redisUs: (redisMs / operations) * 1000,
    scriptUs: scriptUs / operations,
    scriptCallUs: scriptUs / scriptCalls,
    commands: (after.commands - before.commands) / operations,
    operationsPerCall: operations / scriptCalls,
    bytesIn: (after.bytesIn - before.bytesIn) / operations,
    // The first answer to this bench was sent after it had been written.
    bytesOut: (after.bytesOut - before.bytesOut - replyBytes) / operations,
    clientUs: (clientMs / operations) * 1000,
    wallUs: (elapsedMs / operations) * 1000,
    expiredKeys: after.expiredKeys,
  }
}

const HELD_LONG_US = 1000
/** More entries than calls of any pass. */
const SLOWLOG_LENGTH = 1_000_000

async function holding(server: RedisServer, admin: Redis, passes: () => Promise<void>): Promise<Sample> {
  await admin.config('SET', 'slowlog-max-len', SLOWLOG_LENGTH)
  await admin.config('SET', 'slowlog-log-slower-than', 0)
  await admin.slowlog('RESET')
  const pings = await pinging(server.port, passes)
  await admin.config('SET', 'slowlog-log-slower-than', -1)
  const { longestCallUs, callsOver } = await longestCall(admin, HELD_LONG_US)
  return {
    longestCallUs,
    callsOver1Ms: callsOver,
    pingMinMs: pings.minMs,
    pingMeanMs: pings.meanMs,
    pingMaxMs: pings.maxMs,
  }
}

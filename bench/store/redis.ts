/** A redis-server for one bench, with its own counters (INFO, SLOWLOG). */

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
import type { Sample, Subject, SubjectOptions } from './figures.ts'

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
  const entries = (await admin.slowlog('GET', -1)) as [id: number, at: number, us: number, args: string[]][]
  const callsUs = entries.flatMap(([, , us, [name]]) => (/^(eval|fcall)/i.test(name!) ? us : []))
  if (callsUs.length === 0) throw new Error('the slow log holds no script call')
  return {
    longestCallUs: callsUs.reduce((longest, us) => Math.max(longest, us)),
    callsOver1Ms: callsUs.filter(us => us > 1000).length,
  }
}

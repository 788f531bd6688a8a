/** A redis-server for one bench, with its own counters (INFO). */

import { Redis } from 'ioredis'
import { parseRedisUrl } from '../../src/config/redis.ts'
import { StoreClient } from '../../src/store/client/store-client.ts'
import { processUsage } from '../../test/harness/measure.ts'
import { RedisServer } from '../../test/harness/redis.ts'
import type { Drive } from './drive.ts'
import { DEADLINE_MS, type Sample, type Subject, type SubjectOptions } from './figures.ts'

export async function startRedis({ clock }: SubjectOptions): Promise<Subject> {
  const server = await RedisServer.start()
  const admin = new Redis(server.port, '127.0.0.1')
  const store = new StoreClient({
    target: parseRedisUrl(server.url)!,
    keyPrefix: 'powgate',
    clusterShards: 16, // for a Redis Cluster only
    deadlineMs: DEADLINE_MS,
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
    store: store.requests,
    measured: pass => measured(server, admin, pass),
    stateBytes: async () => infoField(await admin.info('memory'), 'used_memory'),
    stateKeys: () => admin.dbsize(),
    stop,
  }
}

async function measured(server: RedisServer, admin: Redis, pass: () => Promise<Drive>): Promise<Sample> {
  const before = await countsOf(admin)
  const { cpuMs } = processUsage(server.pid)
  const { operations, elapsedMs, cpuMs: clientMs } = await pass()
  const redisMs = processUsage(server.pid).cpuMs - cpuMs
  const after = await countsOf(admin)
  const perOperation = (name: keyof typeof after) => (after[name] - before[name]) / operations
  return {
    redisUs: (redisMs / operations) * 1000,
    scriptUs: perOperation('scriptUs'),
    commands: perOperation('commands'),
    operationsPerCall: 1 / perOperation('scriptCalls'),
    bytesIn: perOperation('inBytes'), // with the bench's own two questions, which are a few bytes
    bytesOut: (after.outBytes - before.outBytes - before.toldBytes) / operations,
    clientUs: (clientMs / operations) * 1000,
    wallUs: (elapsedMs / operations) * 1000,
    expiredKeys: after.expiredKeys, // since the server started: one that expired in an earlier pass is missing in this one too
  }
}

/** Counts since the server started. Calls of EVALSHA and its like are each a round trip; nearly all other commands run within scripts. */
async function countsOf(admin: Redis) {
  const [stats, commandStats] = await Promise.all([admin.info('stats'), admin.info('commandstats')])
  let [scriptCalls, scriptUs, commands] = [0, 0, 0]
  for (const [, name, calls, us] of commandStats.matchAll(/^cmdstat_([^:]+):calls=(\d+),usec=(\d+)/gm)) {
    if (/^(evalsha|eval|fcall)(_ro)?$/.test(name!)) {
      scriptCalls += Number(calls)
      scriptUs += Number(us)
    } else commands += Number(calls)
  }
  return {
    scriptCalls,
    scriptUs,
    commands,
    inBytes: infoField(stats, 'total_net_input_bytes'),
    outBytes: infoField(stats, 'total_net_output_bytes'),
    expiredKeys: infoField(stats, 'expired_keys'),
    /** The length of this answer, which the next one counts as sent. */
    toldBytes: Buffer.byteLength(stats + commandStats),
  }
}

/** A number of INFO's reply. Throws if it is not there, so that nothing is taken for zero. */
function infoField(info: string, name: string): number {
  const text = new RegExp(`^${name}:(\\d+)`, 'm').exec(info)?.[1]
  if (text === undefined) throw new Error(`INFO has no ${name}`)
  return Number(text)
}

/** Reads Redis' own counters: script calls, the commands inside them, and bytes on its connections. */

import { once } from 'node:events'
import { Redis } from 'ioredis'

/** Since the servers started. */
export interface RedisCounts {
  /** EVALSHA and its like: each is one round trip of a worker. */
  readonly scriptCalls: number
  /** Time within scripts, and so within the commands that they run. */
  readonly scriptUs: number
  /** All other commands: nearly all of them are run by the scripts. */
  readonly commands: number
  readonly inBytes: number
  /** Sent by Redis, but for what it told these counters. */
  readonly outBytes: number
  readonly expiredKeys: number
}

export interface RedisCounters {
  /** Summed over the servers; asked at once, so that the counts are of this moment. Rejects if a server has gone. */
  read(): Promise<RedisCounts>
  close(): void
}

/** @param ports of Redis servers on 127.0.0.1 */
export async function openRedisCounters(ports: readonly number[]): Promise<RedisCounters> {
  const clients = ports.map(port => new Redis({ port, host: '127.0.0.1', maxRetriesPerRequest: 0 }))
  for (const client of clients) client.on('error', () => {}) // what is asked of it rejects
  const close = () => {
    for (const client of clients) client.disconnect()
  }
  try {
    await Promise.all(clients.map(client => once(client, 'ready')))
  } catch (error) {
    close()
    throw error
  }
  let toldBytes = 0
  const read = async () => {
    const texts = await Promise.all(
      clients.map(client => Promise.all([client.info('stats'), client.info('commandstats')])),
    )
    const counts = texts.map(([stats, commands]) => parseCounts(stats, commands)).reduce(countsTogether)
    const before = toldBytes
    toldBytes += Buffer.byteLength(texts.flat().join(''))
    return { ...counts, outBytes: counts.outBytes - before }
  }
  return { read, close }
}

export function countsBetween(from: RedisCounts, to: RedisCounts): RedisCounts {
  return combined(to, from, (a, b) => a - b)
}

function countsTogether(one: RedisCounts, other: RedisCounts): RedisCounts {
  return combined(one, other, (a, b) => a + b)
}

function combined(one: RedisCounts, other: RedisCounts, combine: (a: number, b: number) => number) {
  const names = Object.keys(one) as (keyof RedisCounts)[]
  return Object.fromEntries(
    names.map(name => [name, combine(one[name], other[name])]),
  ) as unknown as RedisCounts
}

/** A number of INFO's reply. Throws if it is not there, so that nothing is taken for zero. */
export function infoField(info: string, name: string): number {
  const text = new RegExp(`^${name}:(\\d+)`, 'm').exec(info)?.[1]
  if (text === undefined) throw new Error(`INFO has no ${name}`)
  return Number(text)
}

/**
 * @param stats the text of INFO stats
 * @param commandStats the text of INFO commandstats, with lines such as cmdstat_get:calls=21,usec=175,...
 */
function parseCounts(stats: string, commandStats: string): RedisCounts {
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
  }
}

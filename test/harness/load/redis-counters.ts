/** Reads Redis' own counters: script calls, the commands inside them, and bytes on its connections. */

import { once } from 'node:events'
import { Redis } from 'ioredis'

export interface RedisCounts {
  /** EVALSHA and its like: each is one round trip of a worker. */
  readonly scriptCalls: number
  /** All other commands: nearly all of them are run by the scripts. */
  readonly commands: number
  /** Received by Redis. */
  readonly inBytes: number
  /** Sent by Redis. */
  readonly outBytes: number
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
  return { read: async () => sumOf(await Promise.all(clients.map(readOne))), close }
}

export function countsBetween(from: RedisCounts, to: RedisCounts): RedisCounts {
  return {
    scriptCalls: to.scriptCalls - from.scriptCalls,
    commands: to.commands - from.commands,
    inBytes: to.inBytes - from.inBytes,
    outBytes: to.outBytes - from.outBytes,
  }
}

async function readOne(client: Redis): Promise<RedisCounts> {
  const [stats, commands] = await Promise.all([client.info('stats'), client.info('commandstats')])
  return { ...parseCalls(commands), ...parseBytes(stats) }
}

/** A number of INFO's reply. Throws if it is not there, so that nothing is taken for zero. */
export function infoField(info: string, name: string): number {
  const text = new RegExp(`^${name}:(\\d+)`, 'm').exec(info)?.[1]
  if (text === undefined) throw new Error(`INFO has no ${name}`)
  return Number(text)
}

/** @param stats the text of INFO stats */
export function parseBytes(stats: string): Pick<RedisCounts, 'inBytes' | 'outBytes'> {
  return {
    inBytes: infoField(stats, 'total_net_input_bytes'),
    outBytes: infoField(stats, 'total_net_output_bytes'),
  }
}

/** @param commandStats the text of INFO commandstats, with lines such as cmdstat_get:calls=21,usec=175,... */
export function parseCalls(commandStats: string): Pick<RedisCounts, 'scriptCalls' | 'commands'> {
  let [scriptCalls, commands] = [0, 0]
  for (const [, name, calls] of commandStats.matchAll(/^cmdstat_([^:]+):calls=(\d+)/gm)) {
    if (/^(evalsha|eval|fcall)(_ro)?$/.test(name!)) scriptCalls += Number(calls)
    else commands += Number(calls)
  }
  return { scriptCalls, commands }
}

function sumOf(all: readonly RedisCounts[]): RedisCounts {
  const sum = (name: keyof RedisCounts) => all.reduce((total, counts) => total + counts[name], 0)
  return {
    scriptCalls: sum('scriptCalls'),
    commands: sum('commands'),
    inBytes: sum('inBytes'),
    outBytes: sum('outBytes'),
  }
}

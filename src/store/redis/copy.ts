/** Redis as an end of `powgate store copy`. */

import { describeTarget, type RedisTarget } from '../../config/redis.ts'
import type { CopyEnd, StateEntry } from '../copy.ts'
import { type Ask, askAt, type Connection, connect, shardTags, slotOf } from './connection.ts'
import { infoOf, untilUsable } from './inspection.ts'
import { Command } from './ioredis.ts'
import { RedisRecords } from './records.ts'

const SCAN_COUNT = '1000'
const [CALL_MS, OPEN_MS] = [10_000, 5000]
/**
 * A starting service trusts a clock noted within 30 s (lua/epoch.lua). 25 s ahead leaves it 55 s, and a step that would use up a
 * record's minute of margin is still noticed.
 */
const NOTED_AHEAD_MS = 25_000
/** Everything but the epoch and what belongs to it. */
const UNDER_WAY = /^[lncekr]:/

/** @throws StoreSetupError */
export async function openRedisEnd(target: RedisTarget, prefix: string, shards: number): Promise<RedisEnd> {
  const connection = connect(target, CALL_MS)
  const sites = new RedisRecords(connection, prefix, shards)
  try {
    await untilUsable(connection, { target, openMs: OPEN_MS }, () => sites.changesSince(undefined))
    const noted = await sites.noteHost('')
    const place = `${describeTarget(target)} (database ${target.db}, prefix ${prefix})`
    return new RedisEnd(place, connection, sites, prefix, noted.shards ?? shards)
  } catch (error) {
    connection.close()
    throw error
  }
}

class RedisEnd implements CopyEnd {
  readonly place: string
  readonly sites: RedisRecords
  readonly #connection: Connection
  readonly #starts: readonly string[]

  constructor(place: string, connection: Connection, sites: RedisRecords, prefix: string, shards: number) {
    this.place = place
    this.sites = sites
    this.#connection = connection
    this.#starts = shardTags(connection, shards).map(tag => `${prefix}:{${tag}}:`)
  }

  get shards(): number {
    return this.#starts.length
  }

  async usedBy(): Promise<string | undefined> {
    const { living } = await this.sites.noteHost('')
    return living.length === 0 ? undefined : [...new Set(living.map(({ name }) => name))].join(', ')
  }

  async epochs(): Promise<readonly number[] | undefined> {
    const epochs: number[] = []
    for (const start of this.#starts) {
      const [epoch, look] = (await this.#connection.ask('mget', `${start}epoch`, `${start}look`)) as string[]
      // Records may be lost; see lua/epoch.lua.
      const { process, evicted } = await this.#process(start)
      const [noted, , notedEvicted = ''] = look?.split(' ') ?? []
      if (!epoch || noted !== process || notedEvicted !== evicted) return undefined
      epochs.push(Number(epoch))
    }
    return epochs
  }

  async *entries(): AsyncIterable<readonly StateEntry[]> {
    for (const [shard, start] of this.#starts.entries()) {
      for await (const keys of this.#scan(start)) {
        const entries = keys.map(async key => {
          const [value, restMs] = await Promise.all([
            this.#connection.askBytes('get', key) as Promise<Buffer | null>,
            this.#connection.ask('pttl', key) as Promise<number>,
          ])
          return { shard, name: key.slice(start.length), value: value ?? Buffer.alloc(0), restMs }
        })
        yield await Promise.all(entries)
      }
    }
  }

  async write(entries: readonly StateEntry[]): Promise<void> {
    const sets = entries.map(({ shard, name, value, restMs }) => {
      const key = this.#starts[shard]! + name
      return this.#connection.send(new Command('set', [key, value, 'PX', String(Math.ceil(restMs))]))
    })
    await Promise.all(sets)
  }

  async clear(): Promise<void> {
    for (const start of this.#starts)
      for await (const keys of this.#scan(start))
        await Promise.all(keys.map(key => this.#connection.ask('del', key)))
  }

  async adopt(epochs: readonly number[]): Promise<void> {
    const { ask } = this.#connection
    for (const [shard, start] of this.#starts.entries()) {
      const { process, evicted, wallMs } = await this.#process(start)
      await ask('set', `${start}epoch`, String(epochs[shard]))
      await ask('set', `${start}count`, `1 ${epochs[shard]}`)
      const noted = [process, String(wallMs + NOTED_AHEAD_MS), ...(evicted === '' ? [] : [evicted])]
      await ask('set', `${start}look`, noted.join(' '))
    }
  }

  async retire(): Promise<void> {
    for (const start of this.#starts) await this.#connection.ask('del', `${start}epoch`)
  }

  async close(): Promise<void> {
    this.#connection.close()
  }

  /** A key may come twice. */
  async *#scan(start: string): AsyncIterable<readonly string[]> {
    const ask = await this.#serverOf(start)
    let cursor = '0'
    do {
      const reply = await ask('scan', cursor, 'MATCH', `${start}*`, 'COUNT', SCAN_COUNT)
      const [next, keys] = reply as [string, string[]]
      cursor = next
      const wanted = keys.filter(key => UNDER_WAY.test(key.slice(start.length)))
      if (wanted.length > 0) yield wanted
    } while (cursor !== '0')
  }

  /** What lua/epoch.lua notes. */
  async #process(start: string) {
    const ask = await this.#serverOf(start)
    const [seconds, micros] = (await ask('time')) as [string, string]
    const info = await infoOf(ask, 'default')
    if (info.run_id === undefined) throw new Error('Redis does not tell its run_id (INFO)')
    const { evicted_keys: evicted = '0' } = info
    return {
      process: info.run_id + (info.master_replid2 ?? ''),
      evicted: evicted === '0' && info.maxmemory_policy === 'noeviction' ? '' : evicted,
      wallMs: Number(seconds) * 1000 + Math.floor(Number(micros) / 1000),
    }
  }

  async #serverOf(start: string): Promise<Ask> {
    const key = `${start}epoch`
    await this.#connection.locate(key)
    const server = this.#connection.serverOf(slotOf(key))
    if (server === undefined) throw new Error('the server of a shard is away')
    return askAt(server, CALL_MS)
  }
}

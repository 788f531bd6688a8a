/**
 * Sites, API keys and the audit log in Redis. Each key starts with `<prefix>:{sites}:`. Nothing here is sent as a batch, because
 * `powgate site` and the like have seen no time of the store yet: their first batch could replace the epoch (lua/epoch.lua, rule 5c).
 *
 *   record:s/<site key>   JSON of a SiteRecord
 *   record:k/<key id>     JSON of an ApiKeyRecord
 *   revision              number of the last change, which grows with the clock (lua/write-records-n.lua)
 *   changes               sorted set: record by the number of its last change
 *   audit                 stream: JSON of a NewAuditEntry in the field `entry`; its time is in the id
 *   hosts                 hash: hosts by a random id (lua/note-host-2.lua)
 *   shards                number of shards
 *   used                  sorted set: API keys by their last use
 */

import { siteMeter } from '../../domain/address-tags.ts'
import {
  type AuditEntry,
  type AuditQuery,
  type Author,
  auditEntry,
  type NewAuditEntry,
  type RecordChange,
} from '../../domain/audit.ts'
import { dailyRate, readMeter } from '../../domain/meters.ts'
import { type Connection, shardIndex, shardTags, slotOf } from '../client/connection.ts'
import { rethrowChangeError } from '../client/trouble.ts'
import type { HostNote } from '../hosts.ts'
import { type Change, jsonOf, Members, memberOf } from '../members.ts'
import type { LivingHosts, SiteStore } from '../store.ts'
import { NOTE_HOST, WRITE_RECORDS } from './scripts.ts'

/** A command reads or deletes at most this many records, so that Redis answers others in between. (`changesAfter` has only names.) */
const LIST_CHUNK = 500
/** A host counts as living for this long after its last note; it writes one every five seconds. */
const HOST_LIVES_MS = 20_000

export const SITES_SLOT = slotOf('{sites}')

/** `<Unix ms>-<number>`, then fields and values alternately. */
type StreamEntry = readonly [id: string, fields: readonly string[]]

export class RedisRecords extends Members implements SiteStore {
  readonly #connection: Connection
  readonly #prefix: string
  readonly #shards: number

  /** @param shards the number to use while none is in Redis; it matters on a Cluster alone */
  constructor(connection: Connection, prefix: string, shards: number) {
    super()
    this.#connection = connection
    this.#prefix = prefix
    this.#shards = shards
  }

  async commit(changes: readonly RecordChange[], author: Author, revision?: number | null): Promise<boolean> {
    const members = changes.map(memberOf)
    const keys = [
      ...['revision', 'changes', 'audit'].map(name => this.#key(name)),
      ...members.map(member => this.#recordKey(member)),
    ]
    // ARGV of lua/write-records-n.lua, which answers 1 if it has written them.
    const values = changes.flatMap((change, index) => {
      const expected = change.expected === undefined ? '' : JSON.stringify(change.expected)
      return [expected, jsonOf(change), members[index]!, JSON.stringify(auditEntry(change, author))]
    })
    const reply = this.#connection.run(WRITE_RECORDS, keys, [...values, String(revision ?? '')], 'writing')
    return (await reply.catch(rethrowChangeError)) === 1
  }

  async readAudit({ limit, siteKey, sinceMs }: AuditQuery): Promise<AuditEntry[]> {
    const found: AuditEntry[] = []
    const from = sinceMs === undefined ? '-' : streamId(sinceMs)
    let to = '+'
    while (found.length < limit) {
      const range = [this.#key('audit'), to, from, 'COUNT', String(LIST_CHUNK)]
      const entries = (await this.#connection.ask('xrevrange', ...range)) as StreamEntry[]
      const fitting = entries
        .map(auditEntryOf)
        .filter(entry => siteKey === undefined || entry.siteKey === siteKey)
      found.push(...fitting)
      if (entries.length < LIST_CHUNK) break
      to = `(${entries.at(-1)![0]}`
    }
    return found.slice(0, limit).reverse()
  }

  async dropAudit(beforeMs: number): Promise<void> {
    await this.#connection.ask('xtrim', this.#key('audit'), 'MINID', streamId(beforeMs))
  }

  async forget(addressKeys: readonly string[]): Promise<number> {
    let removed = 0
    const tags = await this.#tags()
    for (const [index, names] of (await this.namesOf(addressKeys)).entries()) {
      const tag = tags[shardIndex(addressKeys[index]!, tags.length)]
      const keys = names.map(name => `${this.#prefix}:{${tag}}:${name}`)
      for (let start = 0; start < keys.length; start += LIST_CHUNK)
        removed += Number(await this.#connection.ask('del', ...keys.slice(start, start + LIST_CHUNK)))
    }
    return removed
  }

  async noteUses(uses: ReadonlyMap<string, number>): Promise<void> {
    const scores = [...uses].flatMap(([id, atMs]) => [String(atMs), id])
    if (scores.length > 0) await this.#connection.ask('zadd', this.#key('used'), 'GT', ...scores)
  }

  async readUses(ids: readonly string[]): Promise<Map<string, number>> {
    const uses = new Map<string, number>()
    for (let start = 0; start < ids.length; start += LIST_CHUNK) {
      const some = ids.slice(start, start + LIST_CHUNK)
      const times = (await this.#connection.ask('zmscore', this.#key('used'), ...some)) as (string | null)[]
      times.forEach((time, index) => {
        if (time !== null) uses.set(some[index]!, Number(time))
      })
    }
    return uses
  }

  livingHosts(): Promise<LivingHosts> {
    return this.#hosts()
  }

  async noteHost(id: string, note: HostNote | null, shards?: number): Promise<LivingHosts> {
    // Waits until the hash's server answers: a note that waited in a hung one would show this host's clock as behind. Waits also before
    // a removal, which would else overtake a note.
    await this.#connection.ask('exists', this.#key('hosts'))
    return this.#hosts(id, note === null ? '' : JSON.stringify({ ...note, notedAt: Date.now() }), shards)
  }

  /** Runs lua/note-host-2.lua: without `id` it only reads; with an empty `json` it removes the host. */
  async #hosts(id = '', json = '', shards?: number): Promise<LivingHosts> {
    const values = ['' /* Redis' own clock */, id, json, String(HOST_LIVES_MS), String(shards ?? '')]
    const keys = [this.#key('hosts'), this.#key('shards')]
    const found = await this.#connection.run(NOTE_HOST, keys, values, 'noting a host')
    // Each note is `<ms of the server's clock> <JSON>`.
    const [shardsText, ...notes] = (found as unknown[]).map(String)
    const living = notes.map(text => {
      const space = text.indexOf(' ')
      const host = JSON.parse(text.slice(space)) as HostNote
      const { notedAt } = host
      return notedAt === undefined ? host : { ...host, clockAheadMs: notedAt - Number(text.slice(0, space)) }
    })
    return { shards: shardsText === '' ? undefined : Number(shardsText), living }
  }

  /** Each shard counts the site's proofs of its own addresses: the rate is their sum. */
  async readUsualRate(siteKey: string): Promise<number | undefined> {
    const keys = (await this.#tags()).map(tag => `${this.#prefix}:{${tag}}:${siteMeter(siteKey)}`)
    const found: (Buffer | null)[] = []
    // One after the other, because ioredis refuses a second command to a node that it is connecting to.
    for (const key of keys) found.push((await this.#connection.askBytes('get', key)) as Buffer | null)
    const nowMs = Date.now()
    const meters = found.flatMap(bytes => (bytes ? readMeter(bytes, 0, nowMs) : []))
    return dailyRate(meters, nowMs)
  }

  protected async readJson(members: readonly string[]): Promise<(string | null)[]> {
    const texts: (string | null)[] = []
    for (let start = 0; start < members.length; start += LIST_CHUNK) {
      const keys = members.slice(start, start + LIST_CHUNK).map(member => this.#recordKey(member))
      texts.push(...((await this.#connection.ask('mget', ...keys)) as (string | null)[]))
    }
    return texts
  }

  protected async revision(): Promise<number> {
    return Number((await this.#connection.ask('get', this.#key('revision'))) ?? 0)
  }

  protected async changesAfter(revision: number, countMax = -1 /* all */): Promise<Change[]> {
    const range = [`(${revision}`, '+inf', 'WITHSCORES', 'LIMIT', '0', String(countMax)]
    const reply = (await this.#connection.ask('zrangebyscore', this.#key('changes'), ...range)) as string[]
    return Array.from({ length: reply.length / 2 }, (_, index) => [
      reply[2 * index]!,
      Number(reply[2 * index + 1]),
    ])
  }

  /** Hash tags of the shards. Their number is read from Redis, since a command's settings may lack the one that the hosts agreed on. */
  async #tags(): Promise<readonly string[]> {
    const shards = await this.#connection.ask('get', this.#key('shards'))
    return shardTags(this.#connection, Number(shards ?? this.#shards))
  }

  #key(name: string): string {
    return `${this.#prefix}:{sites}:${name}`
  }

  #recordKey(member: string): string {
    return this.#key(`record:${member}`)
  }
}

/** Redis refuses a negative id, which a time before 1970 would be. */
const streamId = (unixMs: number) => String(Math.max(0, unixMs))

function auditEntryOf([id, [, json]]: StreamEntry): AuditEntry {
  return { at: Number.parseInt(id, 10), ...(JSON.parse(json!) as NewAuditEntry) }
}

/**
 * Sites, API keys and the audit log in Redis. All keys share one hash tag, because workers read them once per change, never
 * per request.
 *
 *   <prefix>:{sites}:record:s/<site key>   JSON of a SiteRecord
 *   <prefix>:{sites}:record:k/<key id>     JSON of an ApiKeyRecord
 *   <prefix>:{sites}:revision              number of the last change
 *   <prefix>:{sites}:changes               sorted set: record by the revision of its last change
 *   <prefix>:{sites}:audit                 stream: JSON of a NewAuditEntry in the field `entry`; its time is in the id
 *   <prefix>:{sites}:uses                  hash: when an API key was last used, by its id
 *   <prefix>:{sites}:speeds                hash: what was learned of a site's visitors, by site key (lua/add-votes-1.lua)
 */

import { Command } from 'ioredis'
import {
  type AuditEntry,
  type AuditQuery,
  type Author,
  auditEntry,
  type NewAuditEntry,
  type RecordChange,
} from '../../domain/audit.ts'
import type { ApiKeyRecord, SiteRecord } from '../../domain/site.ts'
import { withDeadline } from '../deadline.ts'
import { jsonOf, memberOf, splitMembers } from '../members.ts'
import type { SiteChanges, SiteStore } from '../store.ts'
import type { Connection } from './connection.ts'
import { runScript } from './run-script.ts'
import { ADD_VOTES, NOTE_USES, type Script, WRITE_RECORDS } from './scripts.ts'

const LIST_CHUNK = 500

/** An entry of a stream: its id, `<Unix ms>-<number>`, and its fields and values in turn. */
type StreamEntry = readonly [id: string, fields: readonly string[]]

export class RedisRecords implements SiteStore {
  readonly #connection: Connection
  readonly #prefix: string
  readonly #deadlineMs: number
  readonly #clock: (() => number) | undefined

  /** @param clock for tests; the server's own if undefined */
  constructor(connection: Connection, prefix: string, deadlineMs: number, clock?: () => number) {
    this.#connection = connection
    this.#prefix = `${prefix}:{sites}:`
    this.#deadlineMs = deadlineMs
    this.#clock = clock
  }

  readSite(siteKey: string): Promise<SiteRecord | undefined> {
    return this.#read<SiteRecord>(`s/${siteKey}`)
  }

  readApiKey(id: string): Promise<ApiKeyRecord | undefined> {
    return this.#read<ApiKeyRecord>(`k/${id}`)
  }

  listSites(): Promise<SiteRecord[]> {
    return this.#list<SiteRecord>('s/')
  }

  listApiKeys(): Promise<ApiKeyRecord[]> {
    return this.#list<ApiKeyRecord>('k/')
  }

  async commit(changes: readonly RecordChange[], author: Author): Promise<boolean> {
    const members = changes.map(memberOf)
    const keys = [
      ...['revision', 'changes', 'audit'].map(name => this.#key(name)),
      ...members.map(member => this.#recordKey(member)),
    ]
    const values = changes.flatMap((change, index) => {
      const { expected, written } = jsonOf(change)
      return [expected ?? '', written, members[index]!, JSON.stringify(auditEntry(change, author))]
    })
    const what = 'writing, of which it is not known whether it was done'
    return (await this.#script(WRITE_RECORDS, keys, values, what)) === 1
  }

  async readAudit({ limit, siteKey, sinceMs }: AuditQuery): Promise<AuditEntry[]> {
    const found: AuditEntry[] = []
    const from = sinceMs === undefined ? '-' : String(sinceMs)
    let to = '+'
    while (found.length < limit) {
      const count = ['COUNT', String(LIST_CHUNK)]
      const entries = (await this.#call('xrevrange', this.#key('audit'), to, from, ...count)) as StreamEntry[]
      const fitting = entries
        .map(auditEntryOf)
        .filter(entry => siteKey === undefined || entry.siteKey === siteKey)
      found.push(...fitting)
      if (entries.length < LIST_CHUNK) break
      to = `(${entries.at(-1)![0]}`
    }
    return found.slice(0, limit).reverse()
  }

  async noteUses(uses: ReadonlyMap<string, number>): Promise<void> {
    const values = [...uses].flatMap(([id, atMs]) => [id, String(atMs)])
    await this.#script(NOTE_USES, [this.#key('uses')], values, 'noting uses')
  }

  async readUses(ids: readonly string[]): Promise<Map<string, number>> {
    const uses = new Map<string, number>()
    for (let start = 0; start < ids.length; start += LIST_CHUNK) {
      const some = ids.slice(start, start + LIST_CHUNK)
      const times = (await this.#call('hmget', this.#key('uses'), ...some)) as (string | null)[]
      times.forEach((time, index) => {
        if (time !== null) uses.set(some[index]!, Number(time))
      })
    }
    return uses
  }

  async addVotes(votes: ReadonlyMap<string, number>): Promise<Map<string, number>> {
    const clock = this.#clock === undefined ? '' : String(this.#clock())
    const values = [...votes].flatMap(([siteKey, sum]) => [siteKey, String(sum)])
    const answers = await this.#script(ADD_VOTES, [this.#key('speeds')], [clock, ...values], 'adding votes')
    const leads = answers as (string | null)[]
    return new Map(
      [...votes.keys()].flatMap((siteKey, index) =>
        leads[index] === null ? [] : [[siteKey, Number(leads[index])]],
      ),
    )
  }

  async changesSince(revision: number | undefined): Promise<SiteChanges> {
    const present = Number((await this.#call('get', this.#key('revision'))) ?? 0)
    const isReplaced = revision !== undefined && present < revision
    if (revision === undefined || isReplaced || present === revision) {
      return { revision: present, isReplaced, siteKeys: [], apiKeyIds: [] }
    }
    const from = `(${revision}`
    const members = (await this.#call('zrangebyscore', this.#key('changes'), from, '+inf')) as string[]
    return { revision: present, isReplaced, ...splitMembers(members) }
  }

  async #read<Stored>(member: string): Promise<Stored | undefined> {
    const json = await this.#call('get', this.#recordKey(member))
    return json === null ? undefined : (JSON.parse(json as string) as Stored)
  }

  async #list<Stored>(kind: string): Promise<Stored[]> {
    const members = (await this.#call('zrange', this.#key('changes'), '0', '-1')) as string[]
    const wanted = members.filter(member => member.startsWith(kind))
    const records: Stored[] = []
    for (let start = 0; start < wanted.length; start += LIST_CHUNK) {
      const keys = wanted.slice(start, start + LIST_CHUNK).map(member => this.#recordKey(member))
      for (const json of (await this.#call('mget', ...keys)) as (string | null)[]) {
        if (json !== null) records.push(JSON.parse(json) as Stored)
      }
    }
    return records
  }

  #key(name: string): string {
    return this.#prefix + name
  }

  #recordKey(member: string): string {
    return this.#key(`record:${member}`)
  }

  #script(
    script: Script,
    keys: readonly string[],
    values: readonly string[],
    what: string,
  ): Promise<unknown> {
    const call = runScript(this.#connection, script, [String(keys.length), ...keys, ...values])
    return withDeadline(call, this.#deadlineMs, what)
  }

  #call(name: string, ...args: string[]): Promise<unknown> {
    const command = new Command(name, args, { replyEncoding: 'utf8' })
    return withDeadline(this.#connection.send(command), this.#deadlineMs, name)
  }
}

function auditEntryOf([id, [, json]]: StreamEntry): AuditEntry {
  return { at: Number.parseInt(id, 10), ...(JSON.parse(json!) as NewAuditEntry) }
}

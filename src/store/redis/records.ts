/**
 * Sites and API keys in Redis. All of it has one hash tag: it is read once per worker and change, never per request.
 *
 *   <prefix>:{sites}:record:s/<site key>   JSON of a SiteRecord
 *   <prefix>:{sites}:record:k/<key id>     JSON of an ApiKeyRecord
 *   <prefix>:{sites}:revision              number of the last change
 *   <prefix>:{sites}:changes               sorted set: record by the revision of its last change
 */

import { Command } from 'ioredis'
import type { ApiKeyRecord, SiteRecord } from '../../domain/site.ts'
import { withDeadline } from '../deadline.ts'
import { splitMembers } from '../members.ts'
import type { SiteChanges, SiteStore } from '../store.ts'
import type { Connection } from './connection.ts'
import { WRITE_RECORD } from './scripts.ts'
import { runScript } from './shard.ts'

const LIST_CHUNK = 500

export class RedisRecords implements SiteStore {
  readonly #connection: Connection
  readonly #prefix: string
  readonly #deadlineMs: number

  constructor(connection: Connection, prefix: string, deadlineMs: number) {
    this.#connection = connection
    this.#prefix = `${prefix}:{sites}:`
    this.#deadlineMs = deadlineMs
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

  writeSite(record: SiteRecord, expected: SiteRecord | undefined): Promise<boolean> {
    return this.#write(`s/${record.siteKey}`, record, expected)
  }

  writeApiKey(record: ApiKeyRecord, expected: ApiKeyRecord | undefined): Promise<boolean> {
    return this.#write(`k/${record.id}`, record, expected)
  }

  async changesSince(revision: number | undefined): Promise<SiteChanges> {
    const present = Number((await this.#call('get', `${this.#prefix}revision`)) ?? 0)
    const isReplaced = revision !== undefined && present < revision
    if (revision === undefined || isReplaced || present === revision) {
      return { revision: present, isReplaced, siteKeys: [], apiKeyIds: [] }
    }
    const from = `(${revision}`
    const members = (await this.#call('zrangebyscore', `${this.#prefix}changes`, from, '+inf')) as string[]
    return { revision: present, isReplaced, ...splitMembers(members) }
  }

  async #read<Stored>(member: string): Promise<Stored | undefined> {
    const json = await this.#call('get', this.#recordKey(member))
    return json === null ? undefined : (JSON.parse(json as string) as Stored)
  }

  async #list<Stored>(kind: string): Promise<Stored[]> {
    const members = (await this.#call('zrange', `${this.#prefix}changes`, '0', '-1')) as string[]
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

  async #write<Stored>(member: string, record: Stored, expected: Stored | undefined): Promise<boolean> {
    const keys = [this.#recordKey(member), `${this.#prefix}revision`, `${this.#prefix}changes`]
    const values = [expected === undefined ? '' : JSON.stringify(expected), JSON.stringify(record), member]
    const written = runScript(this.#connection, WRITE_RECORD, ['3', ...keys, ...values])
    return (await withDeadline(written, this.#deadlineMs, 'writing a record')) === 1
  }

  #recordKey(member: string): string {
    return `${this.#prefix}record:${member}`
  }

  #call(name: string, ...args: string[]): Promise<unknown> {
    const command = new Command(name, args, { replyEncoding: 'utf8' })
    return withDeadline(this.#connection.send(command), this.#deadlineMs, name)
  }
}

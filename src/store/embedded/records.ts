/**
 * Sites and API keys in LMDB. Every write is on disk before its promise resolves.
 *
 * `changes` holds, in one ordered map: `revision` -> number of the last change; `at/<revision>` -> record;
 * `last/<record>` -> revision of its last change (so that a record is listed once, at its last change).
 */

import type { ApiKeyRecord, SiteRecord } from '../../domain/site.ts'
import { splitMembers } from '../members.ts'
import type { SiteChanges, SiteStore } from '../store.ts'
import type { SitesEnvironment } from './environment.ts'

const REVISION = 'revision'
const REVISION_DIGITS = 15
/** After every `at/...`: '0' follows '/'. */
const CHANGES_END = 'at0'

export class EmbeddedRecords implements SiteStore {
  readonly #sites: SitesEnvironment

  constructor(sites: SitesEnvironment) {
    this.#sites = sites
  }

  async readSite(siteKey: string): Promise<SiteRecord | undefined> {
    return this.#read<SiteRecord>(`s/${siteKey}`)
  }

  async readApiKey(id: string): Promise<ApiKeyRecord | undefined> {
    return this.#read<ApiKeyRecord>(`k/${id}`)
  }

  async listSites(): Promise<SiteRecord[]> {
    return this.#list<SiteRecord>('s/')
  }

  async listApiKeys(): Promise<ApiKeyRecord[]> {
    return this.#list<ApiKeyRecord>('k/')
  }

  async writeSite(record: SiteRecord, expected: SiteRecord | undefined): Promise<boolean> {
    return this.#write(`s/${record.siteKey}`, record, expected)
  }

  async writeApiKey(record: ApiKeyRecord, expected: ApiKeyRecord | undefined): Promise<boolean> {
    return this.#write(`k/${record.id}`, record, expected)
  }

  async changesSince(revision: number | undefined): Promise<SiteChanges> {
    const { changes } = this.#sites
    const present = Number(changes.get(REVISION) ?? 0)
    const isReplaced = revision !== undefined && present < revision
    if (revision === undefined || isReplaced || present === revision) {
      return { revision: present, isReplaced, siteKeys: [], apiKeyIds: [] }
    }
    const range = changes.getRange({ start: changeKey(revision + 1), end: CHANGES_END })
    const members = [...range].map(({ value }) => value)
    return { revision: present, isReplaced, ...splitMembers(members) }
  }

  close(): Promise<void> {
    return this.#sites.root.close()
  }

  #read<Stored>(member: string): Stored | undefined {
    const json = this.#sites.records.get(member)
    return json === undefined ? undefined : (JSON.parse(json) as Stored)
  }

  #list<Stored>(kind: 's/' | 'k/'): Stored[] {
    const end = `${kind[0]}0` // '0' follows '/'
    return [...this.#sites.records.getRange({ start: kind, end })].map(
      ({ value }) => JSON.parse(value) as Stored,
    )
  }

  #write<Stored>(member: string, record: Stored, expected: Stored | undefined): boolean {
    const { root, records, changes } = this.#sites
    return root.transactionSync(() => {
      const expectedJson = expected === undefined ? undefined : JSON.stringify(expected)
      if (records.get(member) !== expectedJson) return false
      const revision = Number(changes.get(REVISION) ?? 0) + 1
      const before = changes.get(`last/${member}`)
      if (before !== undefined) changes.removeSync(changeKey(Number(before)))
      records.putSync(member, JSON.stringify(record))
      changes.putSync(REVISION, String(revision))
      changes.putSync(changeKey(revision), member)
      changes.putSync(`last/${member}`, String(revision))
      return true
    })
  }
}

/** Padded, so that text order is number order. */
function changeKey(revision: number): string {
  return `at/${String(revision).padStart(REVISION_DIGITS, '0')}`
}

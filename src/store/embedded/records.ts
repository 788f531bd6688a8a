/**
 * Sites, API keys and the audit log in LMDB. The databases (records' names are those of members.ts):
 *
 *   records   <record> -> JSON
 *   changes   revision -> number of the last change | at/<revision> -> record | last/<record> -> revision of its last change
 *   audit     at/<revision> -> JSON of the change's entry
 *   uses      <key id> -> Unix ms
 */

import { siteMeter } from '../../domain/address-tags.ts'
import {
  type AuditEntry,
  type AuditQuery,
  type Author,
  auditEntry,
  type RecordChange,
} from '../../domain/audit.ts'
import { dailyRate } from '../../domain/meters.ts'
import { type Change, jsonOf, type MemberKind, Members, memberOf } from '../members.ts'
import { type LivingHosts, type SiteStore, StoreSetupError } from '../store.ts'
import {
  isStateOfThisBoot,
  openSites,
  openState,
  prepareDataDir,
  type SitesEnvironment,
} from './environment.ts'
import { checkSites } from './inspection.ts'
import { readMeterOf } from './meters.ts'
import { refuseForeignOwner } from './owner.ts'
import { keysOf } from './requests.ts'

const REVISION = 'revision'
const AT = 'at/'
const REVISION_DIGITS = 15
/** Of a large `apply`: its leaves of `records`, of `changes` twice, and what is appended. */
const PAGES_A_CHANGE = 4
/** Sorts after every `at/...`: '0' follows '/'. */
const CHANGES_END = 'at0'

export class EmbeddedRecords extends Members implements SiteStore {
  readonly #sites: SitesEnvironment
  readonly #dataDir: string

  constructor(dataDir: string) {
    super()
    this.#dataDir = dataDir
    this.#sites = openSites(dataDir)
  }

  async commit(recordChanges: readonly RecordChange[], author: Author): Promise<boolean> {
    const { file, records } = this.#sites
    return file.write(() => {
      const isExpected = recordChanges.every(
        change => records.get(memberOf(change)) === jsonOf(change).expected,
      )
      if (isExpected) for (const change of recordChanges) this.#write(change, author)
      return isExpected
    }, PAGES_A_CHANGE * recordChanges.length)
  }

  async readAudit({ limit, siteKey, sinceMs = 0 }: AuditQuery): Promise<AuditEntry[]> {
    const found: AuditEntry[] = []
    for (const { value } of this.#sites.audit.getRange({ reverse: true })) {
      const entry = JSON.parse(value) as AuditEntry
      if (entry.at < sinceMs || found.length === limit) break
      if (siteKey === undefined || entry.siteKey === siteKey) found.push(entry)
    }
    return found.reverse()
  }

  async dropAudit(beforeMs: number): Promise<void> {
    const { file, audit } = this.#sites
    const old: string[] = []
    for (const { key, value } of audit.getRange({})) {
      if ((JSON.parse(value) as AuditEntry).at >= beforeMs) break
      old.push(key)
    }
    await file.write(() => {
      for (const key of old) audit.removeSync(key)
    })
  }

  async forget(addressKeys: readonly string[]): Promise<number> {
    if (!isStateOfThisBoot(this.#dataDir)) return 0
    const { file, windows } = openState(this.#dataDir)
    try {
      const found = addressKeys.flatMap(key => keysOf(windows, key))
      file.write(() => {
        for (const key of found) windows.removeSync(key)
      })
      return found.length
    } finally {
      await file.close()
    }
  }

  async noteUses(noted: ReadonlyMap<string, number>): Promise<void> {
    const { file, uses } = this.#sites
    // Between requests, so without a wait for the disk.
    file.writeUnflushed(() => {
      for (const [id, atMs] of noted) if (atMs > Number(uses.get(id) ?? 0)) uses.putSync(id, String(atMs))
    }, noted.size)
  }

  async readUses(ids: readonly string[]): Promise<Map<string, number>> {
    const found = new Map<string, number>()
    for (const id of ids) {
      const atMs = this.#sites.uses.get(id)
      if (atMs !== undefined) found.set(id, Number(atMs))
    }
    return found
  }

  /** One host: owner.ts refuses others. */
  async noteHost(): Promise<LivingHosts> {
    return { shards: 1, living: [] }
  }

  async readUsualRate(siteKey: string): Promise<number | undefined> {
    if (!isStateOfThisBoot(this.#dataDir)) return undefined
    const { file, windows } = openState(this.#dataDir)
    const meter = readMeterOf(windows, siteMeter(siteKey))
    await file.close()
    return dailyRate(meter === undefined ? [] : [meter], Date.now())
  }

  close(): Promise<void> {
    return this.#sites.file.close()
  }

  protected async readMember<Stored>(member: string): Promise<Stored | undefined> {
    const { file, records } = this.#sites
    let json = records.get(member)
    if (json === undefined) {
      // Another process may have written since this snapshot.
      file.root.resetReadTxn()
      json = records.get(member)
    }
    return json === undefined ? undefined : parsed<Stored>(member, json)
  }

  protected async listMembers<Stored>(kind: MemberKind): Promise<Stored[]> {
    const end = `${kind[0]}0` // '0' follows '/'
    return [...this.#sites.records.getRange({ start: kind, end })].map(({ key, value }) =>
      parsed<Stored>(key, value),
    )
  }

  protected async revision(): Promise<number> {
    return Number(this.#sites.changes.get(REVISION) ?? 0)
  }

  protected async changesAfter(revision: number, limit: number): Promise<Change[]> {
    const range = this.#sites.changes.getRange({ start: changeKey(revision + 1), end: CHANGES_END, limit })
    return [...range].map(({ key, value }) => [value, Number(key.slice(AT.length))])
  }

  /** In a transaction. */
  #write(change: RecordChange, author: Author): void {
    const { records, changes, audit } = this.#sites
    const member = memberOf(change)
    const revision = Number(changes.get(REVISION) ?? 0) + 1
    const before = changes.get(`last/${member}`)
    if (before !== undefined) changes.removeSync(changeKey(Number(before)))
    records.putSync(member, jsonOf(change).written)
    changes.putSync(REVISION, String(revision))
    changes.putSync(changeKey(revision), member)
    changes.putSync(`last/${member}`, String(revision))
    const entry: AuditEntry = { at: this.#entryTime(), ...auditEntry(change, author) }
    audit.putSync(changeKey(revision), JSON.stringify(entry))
  }

  /** Not before the last entry, even if the clock stepped back. */
  #entryTime(): number {
    const [last] = this.#sites.audit.getRange({ reverse: true, limit: 1 })
    const lastAt = last === undefined ? 0 : (JSON.parse(last.value) as AuditEntry).at
    return Math.max(Date.now(), lastAt)
  }
}

/**
 * For commands and the dashboard.
 *
 * @throws StoreSetupError
 */
export function openEmbeddedSites(dataDir: string): EmbeddedRecords {
  prepareDataDir(dataDir, false)
  refuseForeignOwner(dataDir)
  checkSites(dataDir)
  return new EmbeddedRecords(dataDir)
}

function parsed<Stored>(member: string, json: string): Stored {
  try {
    return JSON.parse(json) as Stored
  } catch {
    throw new StoreSetupError(
      `POWGATE_DATA_DIR: the record ${JSON.stringify(member)} of the sites is damaged: put back a copy of the directory sites`,
    )
  }
}

/** Padded: text order is number order. */
function changeKey(revision: number): string {
  return `${AT}${String(revision).padStart(REVISION_DIGITS, '0')}`
}

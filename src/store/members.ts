/**
 * What both stores do alike with sites and API keys. Each record is JSON under a name, its member: `s/<site key>` or
 * `k/<API key id>`. The changes of a store are numbered; the last number is its revision.
 */

import { ownerMeters, windowsOf } from '../domain/address-tags.ts'
import type { ApiKeyRecord, SiteRecord } from '../domain/site.ts'
import type { SiteChanges } from './store.ts'

type MemberKind = 's/' | 'k/'

export type Written = { readonly site: SiteRecord } | { readonly apiKey: ApiKeyRecord }

export type Change = readonly [member: string, changeNumber: number]

const CHANGES_A_CALL = 1000

export abstract class Members {
  async readSite(siteKey: string): Promise<SiteRecord | undefined> {
    return (await this.#read<SiteRecord>([`s/${siteKey}`]))[0]
  }

  async readApiKey(id: string): Promise<ApiKeyRecord | undefined> {
    return (await this.#read<ApiKeyRecord>([`k/${id}`]))[0]
  }

  listSites(): Promise<SiteRecord[]> {
    return this.#list<SiteRecord>('s/')
  }

  listApiKeys(): Promise<ApiKeyRecord[]> {
    return this.#list<ApiKeyRecord>('k/')
  }

  async changesSince(revision: number | undefined): Promise<SiteChanges> {
    const present = await this.revision()
    const isReplaced = present < (revision ?? 0)
    const since = isReplaced ? 0 : (revision ?? present)
    const changed = present > since ? await this.changesAfter(since, CHANGES_A_CALL) : []
    const reached = changed.length < CHANGES_A_CALL ? present : changed.at(-1)![1]
    const [siteKeys, apiKeyIds] = [keysOf('s/', changed), keysOf('k/', changed)]
    return { revision: reached, isReplaced, siteKeys, apiKeyIds }
  }

  /** Every name that an address may have in a store: its network's meters, and windows of its visits (`l:`) and redemptions (`c:`). */
  protected async namesOf(addressKeys: readonly string[]): Promise<string[][]> {
    const siteKeys = keysOf('s/', await this.changesAfter(0))
    return addressKeys.map(key => [
      ...ownerMeters(key),
      ...windowsOf(key, siteKeys).flatMap(window => [`l:${window}`, `c:${window}`]),
    ])
  }

  /** Each member's JSON; null or undefined for one that is not there. */
  protected abstract readJson(members: readonly string[]): Promise<(string | null | undefined)[]>
  /** 0 before the first change. */
  protected abstract revision(): Promise<number>
  /** Each member's last change, if its number is higher than this one; oldest first, and at most `countMax` if that is given. */
  protected abstract changesAfter(changeNumber: number, countMax?: number): Promise<Change[]>

  /** Leaves out what was deleted. */
  async #list<Stored extends { readonly deletedAt?: number }>(kind: MemberKind): Promise<Stored[]> {
    const members = keysOf(kind, await this.changesAfter(0)).map(key => kind + key)
    return (await this.#read<Stored>(members)).filter(({ deletedAt }) => deletedAt === undefined)
  }

  async #read<Stored>(members: readonly string[]): Promise<Stored[]> {
    const texts = await this.readJson(members)
    return texts.flatMap((json, index) => (json ? parsed<Stored>(members[index]!, json) : []))
  }
}

function keysOf(kind: MemberKind, changes: readonly Change[]): string[] {
  return changes.filter(([member]) => member.startsWith(kind)).map(([member]) => member.slice(kind.length))
}

function parsed<Stored>(member: string, json: string): Stored {
  try {
    return JSON.parse(json) as Stored
  } catch {
    throw new Error(`the record ${JSON.stringify(member)} in the store is not JSON`)
  }
}

export function memberOf(written: Written): string {
  return 'site' in written ? `s/${written.site.siteKey}` : `k/${written.apiKey.id}`
}

export function jsonOf(written: Written): string {
  return JSON.stringify('site' in written ? written.site : written.apiKey)
}

/**
 * Both stores share this for sites and API keys. Each is JSON under a name, the member: `s/<site key>` or `k/<API key id>`.
 * Changes are numbered; the last number is the revision.
 */

import type { RecordChange } from '../domain/audit.ts'
import type { ApiKeyRecord, SiteRecord } from '../domain/site.ts'
import type { SiteChanges } from './store.ts'

export type MemberKind = 's/' | 'k/'

export type Change = readonly [member: string, revision: number]

const CHANGES_A_CALL = 1000

export abstract class Members {
  readSite(siteKey: string): Promise<SiteRecord | undefined> {
    return this.readMember<SiteRecord>(`s/${siteKey}`)
  }

  readApiKey(id: string): Promise<ApiKeyRecord | undefined> {
    return this.readMember<ApiKeyRecord>(`k/${id}`)
  }

  async listSites(): Promise<SiteRecord[]> {
    return (await this.listMembers<SiteRecord>('s/')).filter(isKept)
  }

  async listApiKeys(): Promise<ApiKeyRecord[]> {
    return (await this.listMembers<ApiKeyRecord>('k/')).filter(isKept)
  }

  async changesSince(revision: number | undefined): Promise<SiteChanges> {
    const present = await this.revision()
    const isReplaced = revision !== undefined && present < revision
    const since = isReplaced ? 0 : (revision ?? present)
    const changed = present > since ? await this.changesAfter(since, CHANGES_A_CALL) : []
    const keysOf = (kind: MemberKind) =>
      changed.filter(([member]) => member.startsWith(kind)).map(([member]) => member.slice(kind.length))
    const reached = changed.length < CHANGES_A_CALL ? present : changed.at(-1)![1]
    return { revision: reached, isReplaced, siteKeys: keysOf('s/'), apiKeyIds: keysOf('k/') }
  }

  protected abstract readMember<Stored>(member: string): Promise<Stored | undefined>
  protected abstract listMembers<Stored>(kind: MemberKind): Promise<Stored[]>
  /** 0 before the first change. */
  protected abstract revision(): Promise<number>
  protected abstract changesAfter(revision: number, countMax: number): Promise<Change[]>
}

const isKept = ({ deletedAt }: { readonly deletedAt?: number }) => deletedAt === undefined

export function memberOf(change: RecordChange): string {
  return 'site' in change ? `s/${change.site.siteKey}` : `k/${change.apiKey.id}`
}

export function jsonOf(change: RecordChange): { expected: string | undefined; written: string } {
  const { expected } = change
  return {
    expected: expected === undefined ? undefined : JSON.stringify(expected),
    written: JSON.stringify('site' in change ? change.site : change.apiKey),
  }
}

/** Sites and API keys as people read them. Hashes of secrets are in no view. */

import type { ApiKeyRecord, SiteRecord } from '../domain/site.ts'
import { printLine, printTable, timeText } from './output.ts'

export type PublicKey = Omit<ApiKeyRecord, 'secretSha256'>

/** Without the hashes; oldest first. */
export function publicKeys(records: readonly ApiKeyRecord[]): PublicKey[] {
  return records
    .map(({ id, siteKey, createdAt, revokedAt }) => ({ id, siteKey, createdAt, revokedAt }))
    .sort((a, b) => a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1))
}

export function printKeys(keys: readonly PublicKey[]): void {
  if (keys.length === 0) {
    printLine('There are no API keys.')
    return
  }
  const head = ['key id', 'site key', 'created', 'state']
  printTable(
    head,
    keys.map(({ id, siteKey, createdAt, revokedAt }) => {
      const state = revokedAt === null ? 'valid' : `revoked ${timeText(revokedAt)}`
      return [id, siteKey, timeText(createdAt), state]
    }),
  )
}

export function stateText({ active }: SiteRecord): string {
  return active ? 'active' : 'disabled'
}

export function originsText({ origins }: SiteRecord): string {
  return origins.join(', ') || 'any'
}

export function siteFields(site: SiteRecord): [name: string, value: string][] {
  const { base, min, max } = site.difficulty
  const { allow, block } = site.ipRules
  const asleep = site.plan === 'pro' ? '' : ` (not used on plan ${site.plan})`
  return [
    ['site key', site.siteKey],
    ['name', site.name],
    ['state', stateText(site)],
    ['plan', site.plan],
    ['origins', originsText(site)],
    ['without Origin', site.requireOrigin ? 'refused' : 'allowed'],
    ['threshold', String(site.threshold)],
    ['difficulty', `${base} bits, ${min} to ${max}`],
    ...(allow.length > 0 ? [['allowed IPs', allow.join(', ') + asleep] as [string, string]] : []),
    ...(block.length > 0 ? [['blocked IPs', block.join(', ') + asleep] as [string, string]] : []),
    ['created', timeText(site.createdAt)],
    ['changed', timeText(site.updatedAt)],
  ]
}

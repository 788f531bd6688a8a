/** Shows sites and API keys as commands print them: lines for people, and an object of each API key for --json. */

import { type ApiKeyRecord, isExpired, raisedBits, type SiteRecord } from '../domain/site.ts'
import {
  completed,
  defaultText,
  FIELDS,
  isOutsidePlan,
  type SiteField,
  type SiteSettings,
  unknownFields,
  valueIn,
} from '../domain/site-fields.ts'
import type { SiteStore } from '../store/store.ts'
import { dateText, type Pair, printLine, printTable, valueText } from './output.ts'

/** An API key as commands show it, without its hash. */
export type ApiKeyView = ReturnType<typeof apiKeyView>

/** A key that expires within two weeks is told to expire soon. */
const SOON_MS = 14 * 86_400_000

/** Returns the API keys of one site, or of all, oldest first. */
export async function findKeys(store: SiteStore, siteKey?: string): Promise<ApiKeyView[]> {
  const all = await store.listApiKeys()
  const records = all.filter(key => siteKey === undefined || key.siteKey === siteKey)
  const uses = await store.readUses(records.map(({ id }) => id))
  return records
    .map(record => apiKeyView(record, uses.get(record.id)))
    .sort((a, b) => a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1))
}

/** Times are Unix milliseconds. The last use is exact to the minute, and null if the store has none. */
export function apiKeyView(record: ApiKeyRecord, lastUsedAt: number | undefined) {
  const { id, siteKey, name = null, createdAt, expiresAt = null, revokedAt } = record
  const state = keyState(record, Date.now())
  return { id, siteKey, name, state, createdAt, expiresAt, revokedAt, lastUsedAt: lastUsedAt ?? null }
}

function keyState(record: ApiKeyRecord, now: number) {
  if (record.revokedAt !== null) return 'revoked'
  if (isExpired(record, now)) return 'expired'
  return isExpired(record, now + SOON_MS) ? 'expires-soon' : 'valid'
}

function keyStateText({ state, expiresAt, revokedAt }: ApiKeyView): string {
  if (state === 'revoked') return `revoked ${dateText(revokedAt!)}`
  if (state === 'expired') return `expired ${dateText(expiresAt!)}`
  if (state === 'expires-soon') return `expires soon: ${dateText(expiresAt!)}`
  return expiresAt === null ? 'valid' : `valid until ${dateText(expiresAt)}`
}

export function printKeys(keys: readonly ApiKeyView[]): void {
  if (keys.length === 0) return printLine('There are no API keys.')
  const rows = keys.map(key => {
    const lastUse = key.lastUsedAt === null ? '-' : dateText(key.lastUsedAt)
    return [key.id, key.siteKey, key.name ?? '-', dateText(key.createdAt), lastUse, keyStateText(key)]
  })
  printTable(['key id', 'site key', 'name', 'created', 'last used', 'state'], rows)
}

export function siteLines(site: SiteRecord): Pair[] {
  const bits = raisedBits(site, Date.now())
  const raise: Pair[] = bits === 0 ? [] : [['raised', `by ${bits} until ${dateText(site.raise!.until)}`]]
  const ofLaterVersion = Array.from(unknownFields(site), ([name, value]): Pair => {
    return [name, `${valueText(value)} (of a later version: kept, not used)`]
  })
  return [
    ['site key', site.siteKey],
    ...raise,
    ...FIELDS.flatMap(field => settingLine(field, completed(site))),
    ...ofLaterVersion,
    ['created', dateText(site.createdAt)],
    ['changed', dateText(site.updatedAt)],
  ]
}

function settingLine(field: SiteField, settings: SiteSettings): Pair[] {
  const value = valueIn(settings, field)
  if (value === undefined) return []
  const defaultWords = defaultText(field)
  if (Array.isArray(value) && value.length === 0 && defaultWords !== undefined)
    return [[field.name, defaultWords]]
  const text = valueText(value)
  if (isOutsidePlan(field, settings.plan))
    return [[field.name, `${text} (not used on plan ${settings.plan})`]]
  // The words may name a default for each puzzle ("18, or 17 with --puzzle hashwx"): this puzzle's is looked up too.
  const defaults = completed({ name: '', puzzle: settings.puzzle })
  const isDefault = text === defaultWords || text === valueText(valueIn(defaults, field))
  return [[field.name, defaultWords === undefined || isDefault ? text : `${text} (default: ${defaultWords})`]]
}

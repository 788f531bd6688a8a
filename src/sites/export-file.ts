/** The file of `powgate site export` and `apply`, and which sites it would change. Settings that it leaves out get their defaults. */

import { type FieldChange, siteChanges } from '../domain/audit.ts'
import { type ApiKeyRecord, nextUpdatedAt, type SiteRecord } from '../domain/site.ts'
import { completed, inEffect, type SiteSettings, withLaterFields } from '../domain/site-fields.ts'
import { siteRecord } from './sites.ts'

export const FILE_FORMAT = 'powgate-sites'
/** Raised when older files would change their meaning. */
export const FILE_VERSION = 1

interface ExportFile {
  readonly format: typeof FILE_FORMAT
  readonly version: typeof FILE_VERSION
  /** Sites without a difficulty's base where it follows from `solveMs`. */
  readonly sites: readonly Record<string, unknown>[]
  readonly apiKeys?: readonly ApiKeyRecord[]
}

export interface SiteEntry {
  /** Without a key, the site is found by its name. */
  readonly siteKey: string | undefined
  readonly settings: SiteSettings
  /** Times of the record in the store that exported it. */
  readonly createdAt?: number | undefined
  readonly updatedAt?: number | undefined
  /** Names of API keys that the site needs. */
  readonly keys?: readonly string[] | undefined
}

/** @param apiKeys if given, the file is for another store, and has the API keys of its sites and all times */
export function exportFile(sites: readonly SiteRecord[], apiKeys?: readonly ApiKeyRecord[]): ExportFile {
  const siteKeys = new Set(sites.map(({ siteKey }) => siteKey))
  return {
    format: FILE_FORMAT,
    version: FILE_VERSION,
    sites: inOrderOfCreation(sites).map(site => {
      // Settings of a later version stay, so that this version refuses the file instead of losing them.
      const settings = withLaterFields(completed(site), site)
      const { base, ...timed } = settings.difficulty
      const difficulty = timed.solveMs === undefined ? settings.difficulty : timed
      const { siteKey, createdAt, updatedAt } = site
      return { siteKey, ...settings, difficulty, ...(apiKeys && { createdAt, updatedAt }) }
    }),
    ...(apiKeys && { apiKeys: apiKeys.filter(({ siteKey }) => siteKeys.has(siteKey)) }),
  }
}

export function inOrderOfCreation(sites: readonly SiteRecord[]): SiteRecord[] {
  return [...sites].sort((a, b) => a.createdAt - b.createdAt || (a.siteKey < b.siteKey ? -1 : 1))
}

export interface FileContent {
  readonly sites: readonly SiteEntry[]
  /** `createdAt` is 0 if the file has none, so that a key in the store counts as newer. A key may have been revoked. */
  readonly apiKeys: readonly ApiKeyRecord[]
}

export interface FileChange {
  readonly action: 'create' | 'change' | 'disable' | 'delete'
  /** undefined for a new site. */
  readonly before: SiteRecord | undefined
  readonly after: SiteRecord
  /** True for a new site whose key is not in the file. */
  readonly isKeyDrawn: boolean
  readonly changes: readonly FieldChange[]
}

export interface FileDiff {
  readonly changes: readonly FileChange[]
  readonly unchanged: number
  /** Contradictions between the file and the present sites. */
  readonly problems: readonly string[]
  /** The names of API keys in the file, each with the key of its site. */
  readonly keys: readonly { readonly siteKey: string; readonly name: string }[]
}

/** What happens to sites that the file does not name. */
export type MissingSites = 'stay' | 'disable' | 'delete'

interface ApplyOptions {
  readonly missing: MissingSites
  /** These sites stay even if the file does not name them. */
  readonly neverMissing: ReadonlySet<string>
  readonly newSiteKey: (name: string) => string
  /** Unix milliseconds. */
  readonly now: number
}

/** An entry describes the site of its key, else the only one of its name, else a new one. */
export function diffWithFile(
  entries: readonly SiteEntry[],
  sites: readonly SiteRecord[],
  { missing, neverMissing, newSiteKey, now }: ApplyOptions,
): FileDiff {
  const problems: string[] = []
  const find = finderOf(entries, sites)
  const planned: FileChange[] = []
  const named = new Set<string>()
  const keys: FileDiff['keys'][number][] = []
  for (const [index, entry] of entries.entries()) {
    const { siteKey, settings, createdAt = now, updatedAt = now } = entry
    const found = find(entry)
    if (found.length > 1) {
      const text = `${found.length} sites are called ${JSON.stringify(settings.name)}; expected a siteKey`
      problems.push(`sites[${index}].siteKey: missing; ${text}`)
      continue
    }
    const [before] = found
    if (before !== undefined) named.add(before.siteKey)
    const identity = before ?? { siteKey: siteKey ?? newSiteKey(settings.name), createdAt }
    keys.push(...(entry.keys ?? []).map(name => ({ siteKey: identity.siteKey, name })))
    const after = siteRecord(
      settings,
      identity,
      before === undefined ? updatedAt : nextUpdatedAt(before, now),
    )
    const changes = siteChanges(before, after)
    // A value that the plan does not use may stay as it is, as after a change of the plan. It may not be set.
    const unused = siteChanges({ ...after, ...inEffect(after) }, after).map(({ field }) => field)
    const isFromOtherStore = entry.updatedAt !== undefined
    for (const { field } of isFromOtherStore ? [] : changes.filter(({ field }) => unused.includes(field)))
      problems.push(`sites[${index}].${field}: expected plan pro, got ${after.plan}`)
    const isNew = before === undefined
    const isKeyDrawn = isNew && siteKey === undefined
    planned.push({ action: isNew ? 'create' : 'change', before, after, isKeyDrawn, changes })
  }
  const unnamed = sites.filter(({ siteKey }) => !named.has(siteKey) && !neverMissing.has(siteKey))
  const changed = planned.filter(({ changes }) => changes.length > 0)
  const unchanged = planned.length - changed.length
  const changes = [...changed, ...unnamed.flatMap(site => changeOfMissing(site, missing, now))]
  return { changes, unchanged, problems, keys }
}

function changeOfMissing(before: SiteRecord, missing: MissingSites, now: number): FileChange[] {
  if (missing === 'stay' || (missing === 'disable' && !before.active)) return []
  const inactive = siteRecord({ ...before, active: false }, before, nextUpdatedAt(before, now))
  const after = missing === 'disable' ? inactive : before // A deletion takes the record as it is.
  return [{ action: missing, before, after, isKeyDrawn: false, changes: siteChanges(before, after) }]
}

function finderOf(
  entries: readonly SiteEntry[],
  sites: readonly SiteRecord[],
): (entry: SiteEntry) => readonly SiteRecord[] {
  const keyed = new Set(entries.map(({ siteKey }) => siteKey))
  const byKey = new Map(sites.map(site => [site.siteKey, [site]]))
  const byName = new Map<string, SiteRecord[]>()
  // A site whose key is in the file belongs to that entry, even if another entry has its name.
  for (const site of sites.filter(({ siteKey }) => !keyed.has(siteKey)))
    byName.set(site.name, [...(byName.get(site.name) ?? []), site])
  return ({ siteKey, settings }) =>
    (siteKey === undefined ? byName.get(settings.name) : byKey.get(siteKey)) ?? []
}

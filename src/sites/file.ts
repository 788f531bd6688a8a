/** The file of `powgate site export` and `apply`, and what it would change. Settings that it leaves out get their defaults. */

import { type FieldChange, siteChanges } from '../domain/audit.ts'
import { type ApiKeyRecord, nextRevision, type SiteRecord } from '../domain/site.ts'
import { completed, inEffect, type SiteSettings, withLaterFields } from '../domain/site-fields.ts'
import { siteRecord } from './sites.ts'

export const FILE_FORMAT = 'powgate-sites'
/** Raised when older files would change their meaning. */
export const FILE_VERSION = 1

interface SitesFile {
  readonly format: typeof FILE_FORMAT
  readonly version: typeof FILE_VERSION
  /** A base that follows from `solveMs` is left out. */
  readonly sites: readonly Record<string, unknown>[]
  readonly apiKeys?: readonly ApiKeyRecord[]
}

export interface SiteEntry {
  /** undefined: found by name. */
  readonly siteKey: string | undefined
  readonly settings: SiteSettings
  /** Times at the store that the site comes from. */
  readonly createdAt?: number | undefined
  readonly updatedAt?: number | undefined
  readonly keys?: readonly string[] | undefined
}

/** @param apiKeys if given, those of these sites and all times are in the file, for another store */
export function sitesFile(sites: readonly SiteRecord[], apiKeys?: readonly ApiKeyRecord[]): SitesFile {
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
  /** `createdAt` is 0 if the file has none: a stored key, revoked perhaps, is later. */
  readonly apiKeys: readonly ApiKeyRecord[]
}

export interface FileChange {
  readonly action: 'create' | 'change' | 'disable' | 'delete'
  /** undefined for a new site. */
  readonly before: SiteRecord | undefined
  readonly after: SiteRecord
  /** True if powgate makes the new site's key. */
  readonly isKeyDrawn: boolean
  readonly changes: readonly FieldChange[]
}

export interface FileDiff {
  readonly changes: readonly FileChange[]
  readonly unchanged: number
  /** Contradictions between the file and the present sites. */
  readonly problems: readonly string[]
  readonly keys: readonly { readonly siteKey: string; readonly name: string }[]
}

interface ApplyOptions {
  /** The fate of sites that the file does not name. */
  readonly missing: 'stay' | 'disable' | 'delete'
  /** These sites stay even if the file does not name them. */
  readonly neverMissing: ReadonlySet<string>
  readonly newSiteKey: (name: string) => string
  /** Unix milliseconds. */
  readonly now: number
}

/** An entry means the site of its key, else the only one of its name, else a new one. */
export function diffWithFile(
  entries: readonly SiteEntry[],
  sites: readonly SiteRecord[],
  { missing: fate, neverMissing, newSiteKey, now }: ApplyOptions,
): FileDiff {
  const problems: string[] = []
  const find = finderOf(entries, sites)
  const planned: FileChange[] = []
  const meant = new Set<string>()
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
    if (before !== undefined) meant.add(before.siteKey)
    const identity = before ?? { siteKey: siteKey ?? newSiteKey(settings.name), createdAt }
    keys.push(...(entry.keys ?? []).map(name => ({ siteKey: identity.siteKey, name })))
    const after = siteRecord(settings, identity, before === undefined ? updatedAt : nextRevision(before, now))
    const changes = siteChanges(before, after)
    // An unchanged value without effect may remain from an earlier plan, also in another store.
    const idle = siteChanges({ ...after, ...inEffect(after) }, after).map(({ field }) => field)
    const isMoved = entry.updatedAt !== undefined
    for (const { field } of isMoved ? [] : changes.filter(({ field }) => idle.includes(field)))
      problems.push(`sites[${index}].${field}: expected plan pro, got ${after.plan}`)
    const isNew = before === undefined
    const isKeyDrawn = isNew && siteKey === undefined
    planned.push({ action: isNew ? 'create' : 'change', before, after, isKeyDrawn, changes })
  }
  const isMissing = ({ siteKey }: SiteRecord) => !meant.has(siteKey) && !neverMissing.has(siteKey)
  const missing = fate === 'stay' ? [] : sites.filter(isMissing)
  const changes = planned.filter(({ changes }) => changes.length > 0)
  const unchanged = planned.length - changes.length
  if (fate === 'disable')
    changes.push(...missing.filter(({ active }) => active).map(site => disabled(site, now)))
  if (fate === 'delete')
    changes.push(
      ...missing.map(before => {
        return { action: 'delete', before, after: before, isKeyDrawn: false, changes: [] } as const
      }),
    )
  return { changes, unchanged, problems, keys }
}

function disabled(before: SiteRecord, now: number): FileChange {
  const after = siteRecord({ ...before, active: false }, before, nextRevision(before, now))
  return { action: 'disable', before, after, isKeyDrawn: false, changes: siteChanges(before, after) }
}

function finderOf(
  entries: readonly SiteEntry[],
  sites: readonly SiteRecord[],
): (entry: SiteEntry) => readonly SiteRecord[] {
  const keyed = new Set(entries.map(({ siteKey }) => siteKey))
  const byKey = new Map(sites.map(site => [site.siteKey, [site]]))
  const byName = new Map<string, SiteRecord[]>()
  // One entry's key takes precedence over another entry's name.
  for (const site of sites.filter(({ siteKey }) => !keyed.has(siteKey)))
    byName.set(site.name, [...(byName.get(site.name) ?? []), site])
  return ({ siteKey, settings }) =>
    (siteKey === undefined ? byName.get(settings.name) : byKey.get(siteKey)) ?? []
}

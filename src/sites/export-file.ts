/**
 * The export file: `powgate site export` prints it, and `powgate apply` makes the sites of a store as it says. Also the texts that
 * tell an operator whose store has no sites to restore them from such a file.
 */

import { type Config, configFlag, storeNameIn } from '../config/config.ts'
import { DEMO_SITE_KEYS } from '../demo/site.ts'
import { type FieldChange, siteChanges } from '../domain/audit.ts'
import { type ApiKeyRecord, nextUpdatedAt, type SiteRecord, updatedAtOf } from '../domain/site.ts'
import { completed, inEffect, type SiteSettings, withUnknownFields } from '../domain/site-fields.ts'
import { PROGRAM } from '../version.ts'
import { drawSiteKey, siteRecord } from './sites.ts'

export const FILE_FORMAT = 'powgate-sites'
/** Raise this number when older files would change their meaning. */
export const FILE_VERSION = 1

/**
 * A site of the file, as parse-export-file.ts reads it: settings that the file leaves out have their defaults here. Without a key, it
 * is found by its name. `site export --whole` gives times: then it is a copy of another store's.
 */
export interface SiteEntry
  extends SiteSettings,
    Partial<Pick<SiteRecord, 'siteKey' | 'createdAt' | 'updatedAt'>> {
  /** Names of API keys that the site needs; `apply` makes those that are missing. */
  readonly keys?: readonly string[]
}

/** What to do if the store has lost sites that a service remembers. The shell opens the file, since the command may run as a user who cannot. */
export function restoreSteps(): string {
  const config = configFlag()
  return `restart nothing, and restore them: ${PROGRAM} site export --from-service${config} > lost.json, then ${PROGRAM} apply -f -${config} < lost.json`
}

/** What to do where a store has no sites, or has lost them: a service that runs already remembers them, if it can be asked. */
export function noSitesText(config: Config, { isStart }: { readonly isStart: boolean }): string {
  // With an admin port, commands ask the service before they print this, so they know that no site is lost.
  const mayBeLost = config.redis !== undefined && (isStart || config.adminPort === undefined)
  const advice = isStart
    ? 'restart no other host, and apply your last export'
    : 'restart nothing, and apply your last export: without POWGATE_ADMIN_PORT the service cannot be asked'
  return `there are no sites yet in ${storeNameIn(config)}: ${PROGRAM} site create --name NAME --origin ORIGIN${configFlag()}; or take over those of another store: ${PROGRAM} site export --whole${mayBeLost ? `. If Redis has lost them, ${advice}` : ''}`
}

/**
 * @param apiKeys makes the file a copy for another store, with the keys of its sites, and when sites were created and changed
 * @param deletedSites that an older copy of the store may have again
 */
export function exportFile(
  sites: readonly SiteRecord[],
  apiKeys?: readonly ApiKeyRecord[],
  deletedSites: readonly DeletedSite[] = [],
) {
  const siteKeys = new Set(sites.map(({ siteKey }) => siteKey))
  return {
    format: FILE_FORMAT,
    version: FILE_VERSION,
    sites: inOrderOfCreation(sites).map(site => {
      // Settings of a later version stay, so that this version refuses the file instead of losing them.
      const settings = withUnknownFields(completed(site), site)
      const { base, ...timed } = settings.difficulty // base follows from solveMs
      const difficulty = timed.solveMs === undefined ? settings.difficulty : timed
      const { siteKey, createdAt, updatedAt } = site
      return { siteKey, ...settings, difficulty, ...(apiKeys && { createdAt, updatedAt }) }
    }),
    ...(apiKeys && { apiKeys: apiKeys.filter(({ siteKey }) => siteKeys.has(siteKey)) }),
    ...(deletedSites.length > 0 && {
      deletedSites: deletedSites.map(({ siteKey, updatedAt }) => ({ siteKey, updatedAt })),
    }),
  }
}

export function inOrderOfCreation(sites: readonly SiteRecord[]): SiteRecord[] {
  return [...sites].sort((a, b) => a.createdAt - b.createdAt || (a.siteKey < b.siteKey ? -1 : 1))
}

/** A site is deleted again if the store has a copy of it that is older than its deletion. */
type DeletedSite = Pick<SiteRecord, 'siteKey' | 'updatedAt'>

/** An API key as the file gives it. Keys that are revoked are there too. */
export type KeyEntry = Pick<ApiKeyRecord, 'id' | 'siteKey' | 'secretSha256'> & Partial<ApiKeyRecord>

export interface FileContent {
  readonly sites: readonly SiteEntry[]
  readonly apiKeys: readonly KeyEntry[]
  readonly deletedSites: readonly DeletedSite[]
}

interface FileChange {
  readonly action: 'create' | 'change' | 'disable' | 'delete'
  readonly before: SiteRecord | undefined
  /** The site to write; if it is deleted, the same as `before`, and `deletion` (sites.ts) makes what is left of it. */
  readonly after: SiteRecord
  /** True for a new site whose key is not in the file. */
  readonly isNewSiteKey: boolean
  readonly fields: readonly FieldChange[]
}

export interface FileDiff {
  readonly changes: readonly FileChange[]
  readonly unchanged: number
  /** Contradictions between the file and the present sites. */
  readonly problems: readonly string[]
  /** The API keys that sites of the file need, by their names. */
  readonly neededKeys: readonly { readonly siteKey: string; readonly name: string }[]
}

/** What happens to sites that the file does not name. */
export type MissingSites = 'stay' | 'disable' | 'delete'

/**
 * An entry describes the site of its key, else the only one of its name, else a new one. If `isDry`, the changes are only printed,
 * and nothing looks for their keys in the store: new sites have their name in place of a key, because the real run draws another.
 */
export function diffWithFile(
  entries: readonly SiteEntry[],
  stored: readonly SiteRecord[],
  missing: MissingSites,
  isDry: boolean,
  now: number,
  deletedSites: readonly DeletedSite[] = [],
): FileDiff {
  const problems: string[] = []
  const find = finderOf(entries, stored)
  const described: (FileChange & { readonly isNewer: boolean })[] = []
  const neededKeys: FileDiff['neededKeys'][number][] = []
  for (const [index, entry] of entries.entries()) {
    const { siteKey, name, createdAt = now, updatedAt = now, keys = [] } = entry
    const found = find(entry)
    if (found.length > 1) {
      const text = `${found.length} sites are called ${JSON.stringify(name)}; expected a siteKey`
      problems.push(`sites[${index}].siteKey: missing; ${text}`)
      continue
    }
    const [before] = found
    const isNew = before === undefined
    const identity = before ?? { siteKey: siteKey ?? (isDry ? name : drawSiteKey()), createdAt }
    neededKeys.push(...keys.map(name => ({ siteKey: identity.siteKey, name })))
    // A newer copy is written even if no setting differs: a service that remembers it counts the site as lost until then.
    const isNewer = !isNew && (entry.updatedAt ?? 0) > updatedAtOf(before)
    // A newer copy is written with its own time: with a later one, the next export of the store where it is from would count as older.
    const changedAt = isNew || isNewer ? updatedAt : nextUpdatedAt(before, now)
    const after = siteRecord(entry, identity, changedAt)
    const fields = siteChanges(before, after)
    // A site that changed to plan free keeps its values of pro, which have no effect, and a copy of it has them too. Any other file
    // may set none of them on plan free. Such fields are those in which the record differs from what is in effect of it.
    const withoutEffect = siteChanges({ ...after, ...inEffect(after) }, after).map(({ field }) => field)
    const isCopy = entry.updatedAt !== undefined
    if (isCopy && !isNew && updatedAt < updatedAtOf(before) && fields.length > 0)
      problems.push(
        `sites[${index}].updatedAt: the store has a newer copy of ${siteKey ?? name}, and keeps it: take the entry out, or only its updatedAt to overwrite the copy`,
      )
    for (const { field } of fields)
      if (withoutEffect.includes(field) && !isCopy)
        problems.push(`sites[${index}].${field}: expected plan pro, got ${after.plan}`)
    const isNewSiteKey = isNew && siteKey === undefined
    described.push({ action: isNew ? 'create' : 'change', before, after, isNewSiteKey, fields, isNewer })
  }
  // The demo page's sites are never missing: an export leaves them out, and the service makes them.
  const present = new Set([...DEMO_SITE_KEYS, ...described.map(({ after }) => after.siteKey)])
  const missingSites = stored.filter(({ siteKey }) => !present.has(siteKey))
  const changed = described.filter(({ fields, isNewer }) => fields.length > 0 || isNewer)
  const deletions = new Map(deletedSites.map(({ siteKey, updatedAt }) => [siteKey, updatedAt]))
  const fateOf = (site: SiteRecord) =>
    updatedAtOf(site) < (deletions.get(site.siteKey) ?? 0) ? 'delete' : missing
  const changes = [...changed, ...missingSites.flatMap(site => changeOfMissing(site, fateOf(site), now))]
  return { changes, unchanged: described.length - changed.length, problems, neededKeys }
}

function changeOfMissing(before: SiteRecord, missing: MissingSites, now: number): FileChange[] {
  if (missing === 'stay' || (missing === 'disable' && !before.active)) return []
  const inactive = siteRecord({ ...before, active: false }, before, nextUpdatedAt(before, now))
  const after = missing === 'disable' ? inactive : before
  return [{ action: missing, before, after, isNewSiteKey: false, fields: siteChanges(before, after) }]
}

/** Returns a function that finds the stored sites which an entry may mean. */
function finderOf(entries: readonly SiteEntry[], stored: readonly SiteRecord[]) {
  const keyed = new Set(entries.map(({ siteKey }) => siteKey))
  const byKey = new Map(stored.map(site => [site.siteKey, [site]]))
  const byName = new Map<string, SiteRecord[]>()
  // A site whose key is in the file belongs to that entry, even if another entry has its name.
  for (const site of stored.filter(({ siteKey }) => !keyed.has(siteKey)))
    byName.set(site.name, [...(byName.get(site.name) ?? []), site])
  return ({ siteKey, name }: SiteEntry): readonly SiteRecord[] =>
    (siteKey === undefined ? byName.get(name) : byKey.get(siteKey)) ?? []
}

/**
 * The file of `powgate site export` and `powgate apply`: sites as a JSON document, and what applying it would change in a
 * store. A setting that an entry leaves out gets its default, whatever value the site had before. All functions are pure.
 */

import { type FieldChange, siteChanges } from '../domain/audit.ts'
import { orderedSettings, type SiteDifficulty, type SiteRecord, type SiteSettings } from '../domain/site.ts'
import { siteRecord } from './sites.ts'

export const FILE_FORMAT = 'powgate-sites'
/** Raised when a file of the version before would get another meaning. */
export const FILE_VERSION = 1

interface SitesFile {
  readonly format: typeof FILE_FORMAT
  readonly version: typeof FILE_VERSION
  readonly sites: readonly (Omit<SiteSettings, 'difficulty'> & {
    readonly siteKey: string
    /** Without a base that follows from `solveMs`. */
    readonly difficulty: Partial<SiteDifficulty>
  })[]
}

/** One site of a file. */
export interface SiteEntry {
  /** undefined: the entry's name identifies the site. */
  readonly siteKey: string | undefined
  /** All settings: defaults replace those that the entry leaves out. */
  readonly settings: SiteSettings
}

/** All settings of all sites in a fixed order, without API keys. */
export function sitesFile(sites: readonly SiteRecord[]): SitesFile {
  return {
    format: FILE_FORMAT,
    version: FILE_VERSION,
    sites: inOrderOfCreation(sites).map(({ siteKey, createdAt: _, updatedAt: __, ...record }) => {
      const settings = orderedSettings(record)
      const { base: ___, ...timed } = settings.difficulty
      const difficulty = timed.solveMs === undefined ? settings.difficulty : timed
      return { siteKey, ...settings, difficulty }
    }),
  }
}

export function inOrderOfCreation(sites: readonly SiteRecord[]): SiteRecord[] {
  return [...sites].sort((a, b) => a.createdAt - b.createdAt || (a.siteKey < b.siteKey ? -1 : 1))
}

export interface PlannedChange {
  readonly action: 'create' | 'change' | 'disable'
  /** undefined for a site that is created. */
  readonly before: SiteRecord | undefined
  readonly after: SiteRecord
  /** Whether the file leaves the key of a new site to powgate. */
  readonly isKeyDrawn: boolean
  readonly changes: readonly FieldChange[]
}

export interface ApplyPlan {
  readonly changes: readonly PlannedChange[]
  /** Number of sites that need no change. */
  readonly unchanged: number
  /** Contradictions between the file and the present sites, one line each. */
  readonly problems: readonly string[]
}

interface ApplyOptions {
  /** Whether sites that the file does not name are disabled. */
  readonly disablesMissing: boolean
  /** Keys of sites that the file may leave out. */
  readonly neverMissing: ReadonlySet<string>
  readonly newSiteKey: () => string
  /** Unix milliseconds. */
  readonly now: number
}

/**
 * @param entries of one file. An entry means the site with its key, else the only site with its name, else a new site
 * @param sites all sites of the store
 */
export function planApply(
  entries: readonly SiteEntry[],
  sites: readonly SiteRecord[],
  { disablesMissing, neverMissing, newSiteKey, now }: ApplyOptions,
): ApplyPlan {
  const problems: string[] = []
  const known = new KnownSites(entries, sites)
  const planned: PlannedChange[] = []
  const meant = new Set<string>()
  for (const [index, { siteKey, settings }] of entries.entries()) {
    const found = known.find(entries[index]!)
    if (found.length > 1) {
      const text = `${found.length} sites are called ${JSON.stringify(settings.name)}; expected a siteKey`
      problems.push(`sites[${index}].siteKey: missing; ${text}`)
      continue
    }
    const [before] = found
    if (before !== undefined) meant.add(before.siteKey)
    const identity = before ?? { siteKey: siteKey ?? newSiteKey(), createdAt: now }
    const after = siteRecord(settings, identity, now)
    const changes = siteChanges(before, after)
    if (setsSleepingRules(after, changes)) {
      problems.push(`sites[${index}].ipRules: expected plan "pro"; plan ${after.plan} has no IP rules`)
    }
    const action = before === undefined ? 'create' : 'change'
    planned.push({
      action,
      before,
      after,
      isKeyDrawn: before === undefined && siteKey === undefined,
      changes,
    })
  }
  const isMissing = ({ siteKey }: SiteRecord) => !meant.has(siteKey) && !neverMissing.has(siteKey)
  const missing = disablesMissing ? sites.filter(site => site.active && isMissing(site)) : []
  planned.push(...missing.map(site => disabled(site, now)))
  const changes = planned.filter(({ changes }) => changes.length > 0)
  return { changes, unchanged: planned.length - changes.length, problems }
}

/** IP rules from before a change to plan `free` may stay in the record. */
function setsSleepingRules({ plan, ipRules }: SiteRecord, changes: readonly FieldChange[]): boolean {
  if (plan === 'pro' || ipRules.allow.length + ipRules.block.length === 0) return false
  return changes.some(({ field, to }) => field.startsWith('ipRules.') && (to as string[]).length > 0)
}

function disabled(before: SiteRecord, now: number): PlannedChange {
  const after = siteRecord({ ...before, active: false }, before, now)
  return { action: 'disable', before, after, isKeyDrawn: false, changes: siteChanges(before, after) }
}

class KnownSites {
  readonly #byKey: ReadonlyMap<string, SiteRecord>
  readonly #byName = new Map<string, SiteRecord[]>()

  constructor(entries: readonly SiteEntry[], sites: readonly SiteRecord[]) {
    this.#byKey = new Map(sites.map(site => [site.siteKey, site]))
    const keyed = new Set(entries.map(({ siteKey }) => siteKey))
    // A site that one entry names by key is not found by another entry's name, even if it had that name.
    for (const site of sites) {
      if (!keyed.has(site.siteKey))
        this.#byName.set(site.name, [...(this.#byName.get(site.name) ?? []), site])
    }
  }

  find({ siteKey, settings }: SiteEntry): readonly SiteRecord[] {
    if (siteKey === undefined) return this.#byName.get(settings.name) ?? []
    const site = this.#byKey.get(siteKey)
    return site === undefined ? [] : [site]
  }
}

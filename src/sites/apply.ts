/** Computes what a file of sites would change in a store. Pure. */

import { type FieldChange, siteChanges } from '../domain/audit.ts'
import type { SiteRecord } from '../domain/site.ts'
import type { SiteEntry } from './file.ts'
import { siteRecord } from './sites.ts'

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

export interface ApplyOptions {
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

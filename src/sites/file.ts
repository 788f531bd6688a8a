/**
 * The file of `powgate site export` and `powgate apply`: sites as a JSON document. A setting that an entry leaves out gets its
 * default, whatever value the site had before.
 */

import { orderedSettings, type SiteDifficulty, type SiteRecord, type SiteSettings } from '../domain/site.ts'

export const FILE_FORMAT = 'powgate-sites'
/** Raised when a file of the version before would get another meaning. */
export const FILE_VERSION = 1

export interface SitesFile {
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

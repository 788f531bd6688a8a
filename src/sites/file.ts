/**
 * The file of `powgate site export` and `powgate apply`: sites as a JSON document. What an entry leaves out has its
 * default, so that a site is what its entry says, whatever it was before.
 */

import { orderedSettings, type SiteRecord, type SiteSettings } from '../domain/site.ts'

export const FILE_FORMAT = 'powgate-sites'
/** Goes up when a file of before would mean something else. */
export const FILE_VERSION = 1

export interface SitesFile {
  readonly format: typeof FILE_FORMAT
  readonly version: typeof FILE_VERSION
  readonly sites: readonly (SiteSettings & { readonly siteKey: string })[]
}

/** A site as a file asks for it. */
export interface SiteEntry {
  /** undefined: it is known by its name. */
  readonly siteKey: string | undefined
  /** All of them: with the defaults of what the entry left out. */
  readonly settings: SiteSettings
}

/** Everything that can be configured, in an order that stays; no API keys. */
export function sitesFile(sites: readonly SiteRecord[]): SitesFile {
  return {
    format: FILE_FORMAT,
    version: FILE_VERSION,
    sites: inOrderOfCreation(sites).map(({ siteKey, createdAt: _, updatedAt: __, ...settings }) => ({
      siteKey,
      ...orderedSettings(settings),
    })),
  }
}

export function inOrderOfCreation(sites: readonly SiteRecord[]): SiteRecord[] {
  return [...sites].sort((a, b) => a.createdAt - b.createdAt || (a.siteKey < b.siteKey ? -1 : 1))
}

/** Warns an operator of a site's valid settings that may be a mistake. */

import { isWide } from '../addresses/address.ts'
import { publicSuffixOf } from '../domain/origin.ts'
import type { SiteRecord } from '../domain/site.ts'
import { completed } from '../domain/site-fields.ts'
import type { HostNote } from '../store/hosts.ts'

/** A carrier has a /32 of IPv6. A wider known network is probably a mistake. */
const CARRIER_V6_BITS = 32

export function siteWarnings(site: SiteRecord, hosts: readonly HostNote[]): string[] {
  const { known, origins, puzzle } = completed(site)
  const hostsWithoutPuzzle = hosts.filter(({ puzzles = ['sha256'] }) => !puzzles.includes(puzzle))
  const wide = known.networks.filter(range => isWide(range, CARRIER_V6_BITS))
  return [
    ...wide.map(
      range => `the known network ${range} is wide: whatever comes from it makes no challenge harder`,
    ),
    ...origins.flatMap(pattern => {
      const suffix = publicSuffixOf(pattern)
      return suffix === undefined
        ? []
        : [`anybody can get a name below ${suffix} that matches ${pattern}, and use the site key there`]
    }),
    ...hostsWithoutPuzzle.map(
      ({ name, version }) =>
        `${name} (powgate ${version}) does not know ${puzzle}: it issues challenges of sha256 and refuses solutions of ${puzzle} until it is upgraded`,
    ),
  ].map(text => `site ${site.siteKey}: ${text}`)
}

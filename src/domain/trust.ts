/** What it means to trust a range: whoever sends from it may claim to be any visitor. */

import { AddressSet, isV4, parseRange } from './address.ts'

/** What the two publish, as of 23 September 2026 (cloudflare.com/ips, api.fastly.com/public-ip-list). */
const SHARED: readonly (readonly [owner: string, AddressSet])[] = [
  [
    'Cloudflare',
    ranges(`173.245.48.0/20 103.21.244.0/22 103.22.200.0/22 103.31.4.0/22 141.101.64.0/18 108.162.192.0/18
      190.93.240.0/20 188.114.96.0/20 197.234.240.0/22 198.41.128.0/17 162.158.0.0/15 104.16.0.0/13 104.24.0.0/14
      172.64.0.0/13 131.0.72.0/22
      2400:cb00::/32 2606:4700::/32 2803:f800::/32 2405:b500::/32 2405:8100::/32 2a06:98c0::/29 2c0f:f248::/32`),
  ],
  [
    'Fastly',
    ranges(`23.235.32.0/20 43.249.72.0/22 103.244.50.0/24 103.245.222.0/23 103.245.224.0/24 104.156.80.0/20
      140.248.64.0/18 140.248.128.0/17 146.75.0.0/17 151.101.0.0/16 157.52.64.0/18 167.82.0.0/17 167.82.128.0/20
      167.82.160.0/20 167.82.224.0/20 172.111.64.0/18 185.31.16.0/22 199.27.72.0/21 199.232.0.0/16
      2a04:4e40::/32 2a04:4e42::/32`),
  ],
]
const LOOPBACK = ranges('127.0.0.0/8')
const PRIVATE = ranges('10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 100.64.0.0/10 fc00::/7 fe80::/10')
const EVERYBODY = ['0.0.0.0/0', '::/0'].map(text => parseRange(text)!)

function ranges(text: string): AddressSet {
  return new AddressSet(text.split(/\s+/))
}

/** @param text of a range that has passed `parseRange` */
export function isEverybody(text: string): boolean {
  const { start, end } = parseRange(text)!
  return EVERYBODY.some(all => all.start === start && all.end === end)
}

/**
 * @param text of a range that has passed `parseRange`
 * @returns the rest of a sentence that begins with the range, or undefined if the range alone is no cause for one
 */
export function riskOfTrusting(text: string): string | undefined {
  const owner = SHARED.find(([, addresses]) => addresses.covers(text))?.[0]
  if (owner !== undefined)
    return `is shared by all customers of ${owner}, any of whom can send a request with a forged X-Forwarded-For: trust a proxy of your own behind it instead`
  if (!isWide(text) || LOOPBACK.covers(text)) return undefined
  const who = PRIVATE.covers(text)
    ? 'every machine and container in it'
    : 'everybody who has an address in it'
  return `is wide: ${who} may claim to be any visitor, which voids limits and address binding: name the proxies alone`
}

/** An IPv4 range wider than /16, or an IPv6 range wider than /48. */
function isWide(text: string): boolean {
  const { start, end } = parseRange(text)!
  const keptBytes = isV4(start) ? 14 : 6
  return start.slice(0, keptBytes) !== end.slice(0, keptBytes)
}

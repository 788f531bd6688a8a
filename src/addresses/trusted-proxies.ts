/**
 * Tells which proxies an operator should not trust, and whether one is missing. A sender within a trusted range can claim to be
 * any visitor (forwarded-for.ts).
 */

import { type Address, AddressSet, isWide, LOOPBACK, PRIVATE } from './address.ts'

/** These ranges were published on 23 September 2026 (cloudflare.com/ips, api.fastly.com/public-ip-list). */
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

function ranges(text: string): AddressSet {
  return new AddressSet(text.split(/\s+/))
}

/** @returns why not to trust the range, in words that follow its name; undefined if it looks safe */
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

/** Fewer visitors may be one household. */
const SEEN_MIN = 20
/** When `#seen` reaches this, both counts are halved, so the latest visitors decide. */
const SEEN_MAX = 200
/** The lead has this share of `#seen` when nine visitors in ten come from one address. */
const LEAD_SHARE = 0.8

/** Notices an untrusted proxy: nearly all visitors seem to come from one private address (Boyer and Moore's majority vote). */
export class ProxyWatch {
  #address: Address = ''
  /** Visitors from `#address`, less those from others. */
  #lead = 0
  #seen = 0

  add(address: Address): void {
    if (this.#seen === SEEN_MAX) {
      this.#seen /= 2
      this.#lead /= 2
    }
    this.#seen++
    if (this.#lead < 1) {
      this.#address = address
      this.#lead = 1
    } else this.#lead += address === this.#address ? 1 : -1
  }

  get isProxyUntrusted(): boolean {
    if (this.#seen < SEEN_MIN || this.#lead < LEAD_SHARE * this.#seen) return false
    return PRIVATE.has(this.#address)
  }
}

/**
 * The client's address: the TCP peer, or what X-Forwarded-For says if the peer is a trusted proxy. Whoever sends from a trusted
 * range can claim to be any visitor, so this file also warns about risky ranges.
 *
 * Each proxy appends its own peer, so all header lines are joined in order and read from the right: the first address that is
 * no trusted proxy is the client. What stands left of it is the client's own claim. If an entry on the way is no address, or
 * there are over HOPS_MAX, the peer is the client.
 *
 * No other header (X-Real-IP, Forwarded, a provider's own) is read: a client can set what its proxy does not.
 */

import { type Address, AddressSet, isV4, LOOPBACK, parseAddress, parseRange } from './address.ts'

const HOPS_MAX = 32
/** `"[ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255%enp0s31f6]:65535"` */
const HOP_CHARACTERS_MAX = 66

/**
 * @param forwardedFor all values of a trusted peer's request, joined with ','
 * @returns undefined if the peer is the client
 */
export function forwardedAddress(forwardedFor: string, trusted: AddressSet): Address | undefined {
  if (forwardedFor === '') return undefined
  let client: Address | undefined
  let end = forwardedFor.length
  for (let hops = 0; end >= 0; hops++) {
    if (hops === HOPS_MAX) return undefined
    const comma = end === 0 ? -1 : forwardedFor.lastIndexOf(',', end - 1)
    const hop = trimOptionalWhitespace(forwardedFor.slice(comma + 1, end))
    end = comma
    if (hop === '') continue // lists may have empty elements (RFC 9110, 5.6.1)
    client = addressFrom(hop)
    if (client === undefined || !trusted.has(client)) return client
  }
  return client
}

/** Brackets, a zone, a port. */
const DECORATED = /^(?:\[([0-9a-fA-F:.]+)(?:%[\w.-]+)?\]|([0-9.]+)|([0-9a-fA-F:.]+)%[\w.-]+)(?::\d{1,5})?$/

/** An address as gateways and backends write it: alone, as `ip:port`, `[ip]:port`, with a zone or in quotes. */
export function addressFrom(text: string): Address | undefined {
  const plain = parseAddress(text)
  if (plain !== undefined || text.length > HOP_CHARACTERS_MAX) return plain
  const quoted = /^"(.*)"$/.exec(text)
  if (quoted !== null) return addressFrom(quoted[1]!)
  const match = DECORATED.exec(text)
  return match === null ? undefined : parseAddress(match[1] ?? match[2] ?? match[3] ?? '')
}

/** Only spaces and tabs (RFC 9110). */
function trimOptionalWhitespace(text: string): string {
  let start = 0
  let end = text.length
  while (start < end && isSpaceOrTab(text.charCodeAt(start))) start++
  while (end > start && isSpaceOrTab(text.charCodeAt(end - 1))) end--
  return start === 0 && end === text.length ? text : text.slice(start, end)
}

function isSpaceOrTab(code: number): boolean {
  return code === 0x20 || code === 0x09
}

/** As published on 23 September 2026 (cloudflare.com/ips, api.fastly.com/public-ip-list). */
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
const PRIVATE = ranges('10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 100.64.0.0/10 fc00::/7 fe80::/10')
const EVERYBODY = ['0.0.0.0/0', '::/0'].map(text => parseRange(text)!)

function ranges(text: string): AddressSet {
  return new AddressSet(text.split(/\s+/))
}

export function isEverybody(text: string): boolean {
  const { start, end } = parseRange(text)!
  return EVERYBODY.some(all => all.start === start && all.end === end)
}

/** @returns what to say after the range; undefined if it looks safe */
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

/** Wider than an IPv4 /16 or so many bytes of IPv6 (six: a /48). */
export function isWide(text: string, v6Bytes = 6): boolean {
  const { start, end } = parseRange(text)!
  const keptBytes = isV4(start) ? 14 : v6Bytes
  return start.slice(0, keptBytes) !== end.slice(0, keptBytes)
}

const SEEN_MIN = 20
/** Then both counts are halved, so the latest visitors decide. */
const SEEN_MAX = 200
/** Reached when nine visitors in ten come from one address. */
const LEAD_SHARE = 0.8

/**
 * Notices an untrusted proxy: nearly all visitors seem to come from one private or loopback address (Boyer and Moore's majority
 * vote).
 */
export class ProxyWatch {
  #address: Address = ''
  /** From it, less those from others. */
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
    return LOOPBACK.has(this.#address) || PRIVATE.has(this.#address)
  }
}

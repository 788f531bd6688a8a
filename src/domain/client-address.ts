/**
 * Whose request this is (design: the TCP peer, unless the peer is a trusted proxy).
 *
 * All X-Forwarded-For lines are joined in order and walked from the right, because each proxy appends what it saw:
 * the first address that is not a trusted proxy's is the client's. Everything left of it is the client's own claim
 * and is never read. An entry on the way that is not an address means that the chain cannot be believed: the peer.
 * So does a chain of more proxies than anybody has, which keeps the work per request bounded.
 *
 * No other header is read: X-Real-IP, Forwarded (RFC 7239) and those of particular providers are the client's own words
 * wherever the proxy does not set them, and no proxy sets all of them.
 */

import { type Address, type AddressSet, parseAddress } from './address.ts'

const HOPS_MAX = 32
/** `[ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255]:65535` */
const HOP_CHARACTERS_MAX = 53

/**
 * The client's address, by the header of a trusted proxy.
 *
 * @param forwardedFor all X-Forwarded-For values of a trusted peer's request, joined with ',' (empty when there is none)
 * @param trusted addresses of trusted proxies
 * @returns undefined: the client is the peer
 */
export function forwardedAddress(forwardedFor: string, trusted: AddressSet): Address | undefined {
  if (forwardedFor === '') return undefined
  let client: Address | undefined
  let end = forwardedFor.length
  for (let hops = 0; end >= 0; hops++) {
    if (hops === HOPS_MAX) return undefined
    const comma = end === 0 ? -1 : forwardedFor.lastIndexOf(',', end - 1)
    client = parseHop(forwardedFor.slice(comma + 1, end))
    if (client === undefined || !trusted.has(client)) return client
    end = comma
  }
  return client
}

const PORT_SUFFIX = /^(?:\[([0-9a-fA-F:.]+)\]|([0-9.]+))(?::\d{1,5})?$/

/** An address, which some proxies write with a port (`a.b.c.d:port`, `[h::h]:port`). */
function parseHop(text: string): Address | undefined {
  const hop = trimOptionalWhitespace(text)
  if (hop.length > HOP_CHARACTERS_MAX) return undefined
  const plain = parseAddress(hop)
  if (plain !== undefined) return plain
  const match = PORT_SUFFIX.exec(hop)
  return match === null ? undefined : parseAddress(match[1] ?? match[2] ?? '')
}

/** RFC 9110 optional whitespace: spaces and tabs, nothing else. */
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

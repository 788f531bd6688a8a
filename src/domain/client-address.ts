/**
 * The address of the client: the TCP peer, or the address that X-Forwarded-For gives if the peer is a trusted proxy.
 *
 * All lines of the header are joined in order and read from the right, because each proxy appends its own peer. The first
 * address that is not a trusted proxy's is the client's. Entries to the left are the client's own claims, and are not read.
 * If an entry on the way is no address, the chain cannot be trusted, and the client is the peer. The same holds for a chain
 * of more than HOPS_MAX entries, which bounds the work per request.
 *
 * No other header is read, such as X-Real-IP, Forwarded (RFC 7239) or those of particular providers. Where the proxy does
 * not set such a header, the client can, and no proxy sets all of them.
 */

import { type Address, type AddressSet, parseAddress } from './address.ts'

const HOPS_MAX = 32
/** Length of `[ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255]:65535`. */
const HOP_CHARACTERS_MAX = 53

/**
 * The client's address according to a trusted proxy's header.
 *
 * @param forwardedFor all X-Forwarded-For values of a trusted peer's request, joined with ',' (empty when there is none)
 * @param trusted addresses of trusted proxies
 * @returns undefined if the client is the peer
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

/** Parses an address; some proxies add a port (`a.b.c.d:port`, `[h::h]:port`). */
function parseHop(text: string): Address | undefined {
  const hop = trimOptionalWhitespace(text)
  if (hop.length > HOP_CHARACTERS_MAX) return undefined
  const plain = parseAddress(hop)
  if (plain !== undefined) return plain
  const match = PORT_SUFFIX.exec(hop)
  return match === null ? undefined : parseAddress(match[1] ?? match[2] ?? '')
}

/** Trims RFC 9110's optional whitespace: spaces and tabs, nothing else. */
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

/**
 * The client's address: the TCP peer, or what X-Forwarded-For says if the peer is a trusted proxy (trusted-proxies.ts).
 *
 * Each proxy appends its own peer, so all header lines are joined in order and read from the right: the first address that is
 * no trusted proxy is the client, or the leftmost if all are. What stands left of the client is its own claim. If an entry on the
 * way is no address, or there are over HOPS_MAX, the peer is the client.
 *
 * No other header (X-Real-IP, Forwarded, a provider's own) is read: a client can set what its proxy does not.
 */

import { type Address, type AddressSet, parseAddress } from './address.ts'

const HOPS_MAX = 32
/** The longest entry is `"[ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255%INTERFACE]:65535"`, with 15 characters for the interface. */
const HOP_CHARACTERS_MAX = 71

/** @param forwardedFor all values of a trusted peer's request, joined with ','. @returns undefined if the peer is the client */
export function forwardedAddress(forwardedFor: string, trusted: AddressSet): Address | undefined {
  if (forwardedFor === '') return undefined
  let client: Address | undefined
  let end = forwardedFor.length
  for (let hops = 0; end >= 0; hops++) {
    if (hops === HOPS_MAX) return undefined
    const comma = end === 0 ? -1 : forwardedFor.lastIndexOf(',', end - 1)
    const hop = forwardedFor.slice(comma + 1, end).trim()
    end = comma
    if (hop === '') continue // lists may have empty elements (RFC 9110, 5.6.1)
    client = addressFrom(hop)
    if (client === undefined || !trusted.has(client)) return client
  }
  return client
}

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

import type { Address, AddressSet } from '../../src/domain/address.ts'
import { forwardedAddress } from '../../src/domain/client-address.ts'

/** The client's address, as an exchange determines it. @param peer address of the TCP connection, trusted or not */
export function clientAddress(peer: Address, forwardedFor: string, trusted: AddressSet): Address {
  return trusted.has(peer) ? (forwardedAddress(forwardedFor, trusted) ?? peer) : peer
}

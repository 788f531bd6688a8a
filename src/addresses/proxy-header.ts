/**
 * The PROXY protocol header: a proxy sends its client's address ahead of the connection's first byte
 * (https://www.haproxy.org/download/2.6/doc/proxy-protocol.txt). Version 1, for proxies that cannot send version 2, is a line of
 * text. Version 2 is binary:
 *
 *   0            12            13                  14         16
 *   | signature  | 2 | command | family | transport | length   | source, destination, ports, extensions |
 */

import { type Address, addressFromBytes, parseAddress } from './address.ts'

type ProxyHeader =
  | { readonly status: 'incomplete' }
  | { readonly status: 'wrong'; readonly why: string }
  | {
      readonly status: 'complete'
      readonly headerBytes: number
      /** undefined for the proxy's own connection (a health check), or a client without an IP address. */
      readonly source: Address | undefined
    }

const SIGNATURE = Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1')
const FIXED_BYTES = 16
/** Extensions with certificates take a few KiB. */
const BYTES_MAX = 16_384

/** Version 2 in the upper four bits, the command in the lower four. */
const [LOCAL, PROXY] = [0x20, 0x21]
/** Sizes of one address, and of both with their ports: unspecified, IPv4, IPv6, and Unix sockets, which have no IP address. */
const FAMILIES: readonly { readonly addressBytes: number; readonly blockBytes: number }[] = [
  { addressBytes: 0, blockBytes: 0 },
  { addressBytes: 4, blockBytes: 12 },
  { addressBytes: 16, blockBytes: 36 },
  { addressBytes: 0, blockBytes: 216 },
]
const TRANSPORT_MAX = 2 // 0 is unspecified, 1 a stream, 2 datagrams

const V1_START = Buffer.from('PROXY ')
/** The longest line of version 1, by the specification. */
const V1_BYTES_MAX = 107
const V1_LINE = /^PROXY (?:UNKNOWN(?: [ -~]*)?|(TCP4|TCP6) ([0-9a-fA-F.:]+) [0-9a-fA-F.:]+ \d{1,5} \d{1,5})$/

const INCOMPLETE: ProxyHeader = { status: 'incomplete' }

/** @param bytes what has arrived so far */
export function readProxyHeader(bytes: Buffer): ProxyHeader {
  if (startsLike(bytes, SIGNATURE)) return bytes.length < FIXED_BYTES ? INCOMPLETE : readV2(bytes)
  if (startsLike(bytes, V1_START)) return readV1(bytes)
  return wrong('the connection does not start with a PROXY protocol header')
}

function startsLike(bytes: Buffer, start: Buffer): boolean {
  const length = Math.min(bytes.length, start.length)
  return bytes.compare(start, 0, length, 0, length) === 0
}

function readV2(bytes: Buffer): ProxyHeader {
  const command = bytes[12]!
  if (command !== LOCAL && command !== PROXY)
    return wrong(`version and command ${hex(command)} are not known`)
  // LOCAL is the proxy's own connection; its family is to be ignored, by the specification.
  const kind = command === LOCAL ? 0 : bytes[13]!
  const family = FAMILIES[kind >> 4]
  if (family === undefined || (kind & 0x0f) > TRANSPORT_MAX)
    return wrong(`family and transport ${hex(kind)} are not known`)
  const length = bytes.readUInt16BE(14)
  const total = FIXED_BYTES + length
  if (total > BYTES_MAX) return wrong(`${total} bytes are more than ${BYTES_MAX}`)
  if (length < family.blockBytes) return wrong(`${length} bytes are too few for its addresses`)
  if (bytes.length < total) return INCOMPLETE
  const block = bytes.subarray(FIXED_BYTES, FIXED_BYTES + family.addressBytes)
  const source = block.length > 0 ? addressFromBytes(block) : undefined
  return { status: 'complete', headerBytes: total, source }
}

function readV1(bytes: Buffer): ProxyHeader {
  const end = bytes.subarray(0, V1_BYTES_MAX).indexOf('\r\n')
  if (end < 0) return bytes.length < V1_BYTES_MAX ? INCOMPLETE : wrong('its line does not end')
  const match = V1_LINE.exec(bytes.toString('latin1', 0, end))
  if (match === null) return wrong('its line is not of version 1')
  const [, family, text] = match
  const source = text === undefined ? undefined : parseAddress(text)
  if (text !== undefined && (source === undefined || text.includes(':') !== (family === 'TCP6')))
    return wrong('its source is not an address of its family')
  return { status: 'complete', headerBytes: end + 2, source }
}

function wrong(why: string): ProxyHeader {
  return { status: 'wrong', why }
}

function hex(byte: number): string {
  return `0x${byte.toString(16).padStart(2, '0')}`
}

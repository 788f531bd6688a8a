/** Makes headers of the PROXY protocol, version 2 (HAProxy's proxy-protocol.txt, section 2.2), valid and invalid ones. */

export interface V2Options {
  readonly version?: number
  /** 0: LOCAL, 1: PROXY. */
  readonly command?: number
  /** In the high four bits 1: IPv4, 2: IPv6, 3: Unix; in the low four 1: stream, 2: datagram. */
  readonly family?: number
  /** Dotted IPv4, or the 32 hexadecimal digits of IPv6. */
  readonly source?: string
  /** Stands in place of an address block of `family` and `source`. */
  readonly addresses?: Buffer
  readonly extensions?: Buffer
  /** What the header states in place of the true length. */
  readonly length?: number
}

/** Source 12345, destination 8080. */
const PORTS = Buffer.from([0x30, 0x39, 0x1f, 0x90])

function addressBlock(family: number, source: string): Buffer {
  if (family >> 4 === 1) return Buffer.concat([v4(source), v4('127.0.0.1'), PORTS])
  if (family >> 4 === 2) return Buffer.concat([Buffer.from(source, 'hex'), Buffer.alloc(16, 1), PORTS])
  if (family >> 4 === 3) return Buffer.alloc(2 * 108, 'a') // two paths of Unix sockets, 108 bytes each
  return Buffer.alloc(0)
}

function v4(text: string): Buffer {
  return Buffer.from(text.split('.').map(Number))
}

export function v2Header(options: V2Options = {}): Buffer {
  const { version = 2, command = 1, family = 0x11, source = '203.0.113.1' } = options
  const { addresses = addressBlock(family, source), extensions = Buffer.alloc(0) } = options
  const rest = Buffer.concat([addresses, extensions])
  const fixed = Buffer.from([(version << 4) | command, family, 0, 0])
  fixed.writeUInt16BE(options.length ?? rest.length, 2)
  return Buffer.concat([Buffer.from('0d0a0d0a000d0a515549540a', 'hex'), fixed, rest]) // the signature of version 2 comes first
}

/** An extension (TLV) of zeros, `bytes` long with its type and length. */
export function extension(type: number, bytes: number): Buffer {
  const whole = Buffer.alloc(bytes)
  whole[0] = type
  whole.writeUInt16BE(bytes - 3, 1)
  return whole
}

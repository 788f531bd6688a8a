/** Reads calls and writes replies as Redis does (its protocol, version 2), so workers have one client for both stores. */

const [ASTERISK, DOLLAR, CARRIAGE_RETURN, LINE_FEED, DIGIT_ZERO] = [0x2a, 0x24, 0x0d, 0x0a, 0x30]
/** The most arguments of a call, and the most bytes of an argument: a larger number is no call of a client. */
const NUMBER_MAX = 2 ** 26

/** `*<count>`, then `$<length>` and the bytes of each argument, every line ended by two characters. */
export class Call {
  readonly bytes: Buffer
  /** Offsets by argument. */
  readonly starts: readonly number[]
  readonly ends: readonly number[]

  constructor(bytes: Buffer, starts: readonly number[], ends: readonly number[]) {
    this.bytes = bytes
    this.starts = starts
    this.ends = ends
  }

  text(index: number): string {
    return this.bytes.toString('latin1', this.starts[index], this.ends[index])
  }

  utf8(index: number): string {
    return this.bytes.toString('utf8', this.starts[index], this.ends[index])
  }

  get name(): string {
    return this.text(0).toLowerCase()
  }
}

/** Cuts what a connection sends into calls. */
export class CallReader {
  /** What came after the last whole call, and its length. */
  #pieces: Buffer[] = []
  #bytes = 0
  /** `next` joins the pieces only once there are this many bytes, the end of the present argument: 25 MB of sites come in 400 pieces. */
  #bytesNeeded = 1
  /** Offset at which `next` reads. */
  #at = 0

  add(bytes: Buffer): void {
    this.#pieces.push(bytes)
    this.#bytes += bytes.length
  }

  /** Returns undefined until the next call is whole. @throws if the bytes are no call */
  next(): Call | undefined {
    if (this.#bytes < this.#bytesNeeded) return undefined
    const bytes = this.#pieces.length === 1 ? this.#pieces[0]! : Buffer.concat(this.#pieces)
    this.#pieces = [bytes]
    this.#at = 0
    const count = this.#readNumber(bytes, ASTERISK)
    if (count === undefined) return undefined
    const [starts, ends] = [[] as number[], [] as number[]]
    for (let index = 0; index < count; index++) {
      const length = this.#readNumber(bytes, DOLLAR)
      if (length === undefined) return undefined
      const end = this.#at + length
      if (end + 2 > bytes.length) {
        this.#bytesNeeded = end + 2
        return undefined
      }
      starts.push(this.#at)
      ends.push(end)
      this.#at = end + 2
    }
    this.#pieces = [bytes.subarray(this.#at)]
    this.#bytes -= this.#at
    this.#bytesNeeded = 1
    return new Call(bytes, starts, ends)
  }

  /** @param sign the character before the number @returns undefined if its line is not whole */
  #readNumber(bytes: Buffer, sign: number): number | undefined {
    let at = this.#at
    if (at >= bytes.length) return undefined
    if (bytes[at] !== sign) throw new Error('no call')
    let number = 0
    for (at++; at < bytes.length && bytes[at] !== CARRIAGE_RETURN; at++) {
      const digit = bytes[at]! - DIGIT_ZERO
      number = number * 10 + digit
      if (digit < 0 || digit > 9 || number > NUMBER_MAX) throw new Error('no call')
    }
    if (at + 1 >= bytes.length) return undefined
    if (bytes[at + 1] !== LINE_FEED) throw new Error('no call')
    this.#at = at + 2
    return number
  }
}

export function bulkReply(bytes: Buffer): Buffer {
  const head = `$${bytes.length}\r\n`
  const reply = Buffer.allocUnsafe(head.length + bytes.length + 2)
  reply.write(head, 0, 'latin1')
  bytes.copy(reply, head.length)
  reply.write('\r\n', head.length + bytes.length, 'latin1')
  return reply
}

/** @param code as Redis has it: `OOM`, `ERR` */
export function errorReply(code: string, text: string): Buffer {
  return Buffer.from(`-${code} ${text.replace(/[\r\n]+/g, ' ')}\r\n`)
}

export const OK_REPLY = Buffer.from('+OK\r\n')

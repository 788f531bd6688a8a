/** SHA-256 (FIPS 180-4) in plain JavaScript, for the solvers and for pages that have no `crypto.subtle`. */

/** Square roots' fractions of the first eight primes (5.3.3). */
export const INITIAL_STATE: readonly number[] = fractions(8, 1 / 2)
/** Cube roots' fractions of the first 64 primes (4.2.2). */
export const ROUND_CONSTANTS: readonly number[] = fractions(64, 1 / 3)

/** First 32 bits of the fractions of the primes' powers; doubles are exact enough (35 bits of fraction). */
function fractions(count: number, power: number): number[] {
  const words: number[] = []
  for (let candidate = 2; words.length < count; candidate++) {
    let isPrime = true
    for (let divisor = 2; divisor * divisor <= candidate; divisor++) isPrime &&= candidate % divisor !== 0
    if (isPrime) words.push(((candidate ** power % 1) * 2 ** 32) | 0)
  }
  return words
}

const rotateRight = (word: number, bits: number): number => (word >>> bits) | (word << (32 - bits))
/** The schedule's functions (4.1.2). */
export const sigma0 = (word: number): number => rotateRight(word, 7) ^ rotateRight(word, 18) ^ (word >>> 3)
export const sigma1 = (word: number): number => rotateRight(word, 17) ^ rotateRight(word, 19) ^ (word >>> 10)

/**
 * One round (6.2.2, step 3) on the state, in place.
 *
 * @param state a to h
 * @param input the round's constant and message word, added
 */
export function round(state: Int32Array | number[], input: number): void {
  const [a, b, c, d, e, f, g, h] = state as [number, number, number, number, number, number, number, number]
  const choice = (e & f) ^ (~e & g)
  const first = (h + (rotateRight(e, 6) ^ rotateRight(e, 11) ^ rotateRight(e, 25)) + choice + input) | 0
  const majority = (a & b) ^ (a & c) ^ (b & c)
  const second = ((rotateRight(a, 2) ^ rotateRight(a, 13) ^ rotateRight(a, 22)) + majority) | 0
  state[7] = g
  state[6] = f
  state[5] = e
  state[4] = (d + first) | 0
  state[3] = c
  state[2] = b
  state[1] = a
  state[0] = (first + second) | 0
}

/** The message's 64-byte blocks as 16 big-endian words each (5.1.1, 5.2.1). */
export function blocksOf(message: Uint8Array): Int32Array[] {
  const { length } = message
  const words = new Int32Array(((length + 8) >> 6) * 16 + 16)
  for (let index = 0; index < length; index++) words[index >> 2]! |= message[index]! << bitOffset(index)
  words[length >> 2]! |= 0x80 << bitOffset(length)
  words[words.length - 1] = length * 8
  const blocks: Int32Array[] = []
  for (let start = 0; start < words.length; start += 16) blocks.push(words.subarray(start, start + 16))
  return blocks
}

const bitOffset = (byte: number): number => 24 - (byte & 3) * 8

const encoder = new TextEncoder()

/** The digest of a text's UTF-8 bytes as eight words. */
export function digestWords(text: string): number[] {
  let hash = [...INITIAL_STATE]
  const schedule = new Int32Array(64)
  for (const block of blocksOf(encoder.encode(text))) {
    schedule.set(block)
    for (let t = 16; t < 64; t++) {
      schedule[t] =
        sigma1(schedule[t - 2]!) + schedule[t - 7]! + sigma0(schedule[t - 15]!) + schedule[t - 16]!
    }
    const state = [...hash]
    for (let t = 0; t < 64; t++) round(state, ROUND_CONSTANTS[t]! + schedule[t]!)
    hash = hash.map((word, index) => (word + state[index]!) | 0)
  }
  return hash
}

/** SHA-256 of a text's UTF-8 bytes, 64 lowercase hexadecimal characters. */
export function sha256Hex(text: string): string {
  return digestWords(text)
    .map(word => (word >>> 0).toString(16).padStart(8, '0'))
    .join('')
}

/** SHA-256 (FIPS 180-4) in plain JavaScript, for the solvers and for pages that have no `crypto.subtle`. */

/** Fractions of the first eight primes' square roots (5.3.3). */
export const INITIAL_STATE: readonly number[] = fractions(8, 1 / 2)
/** Fractions of the first 64 primes' cube roots (4.2.2). */
export const ROUND_CONSTANTS: readonly number[] = fractions(64, 1 / 3)

/** Fractions of the first primes' powers, in 32 bits. The powers are below 8, so a double has 50 bits of a fraction. */
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

/** One round (6.2.2, step 3) on a to h, in place. @param input the round's constant plus its message word */
export function round(state: Int32Array, input: number): void {
  const [a = 0, b = 0, c = 0, , e = 0, f = 0, g = 0, h = 0] = state
  const choice = (e & f) ^ (~e & g)
  const first = h + (rotateRight(e, 6) ^ rotateRight(e, 11) ^ rotateRight(e, 25)) + choice + input
  const majority = (a & b) ^ (a & c) ^ (b & c)
  state.copyWithin(1, 0) // a becomes b, b becomes c ...
  state[4]! += first
  state[0] = first + (rotateRight(a, 2) ^ rotateRight(a, 13) ^ rotateRight(a, 22)) + majority
}

const encoder = new TextEncoder()

/** A text's UTF-8 bytes, padded to whole blocks of 16 words (5.1.1). */
export function paddedWords(text: string): Int32Array {
  const bytes = encoder.encode(text)
  const { length } = bytes
  const words = new Int32Array(((length + 8) >> 6) * 16 + 16)
  const put = (byte: number, at: number) => {
    words[at >> 2]! |= byte << (24 - (at & 3) * 8)
  }
  bytes.forEach(put)
  put(0x80, length)
  words[words.length - 1] = length * 8
  return words
}

/** The digest of a text's UTF-8 bytes, in eight words. */
export function digestWords(text: string): Int32Array {
  const words = paddedWords(text)
  const hash = Int32Array.from(INITIAL_STATE)
  const schedule = new Int32Array(64)
  for (let start = 0; start < words.length; start += 16) {
    schedule.set(words.subarray(start, start + 16))
    for (let t = 16; t < 64; t++) {
      schedule[t] =
        sigma1(schedule[t - 2]!) + schedule[t - 7]! + sigma0(schedule[t - 15]!) + schedule[t - 16]!
    }
    const state = hash.slice()
    for (let t = 0; t < 64; t++) round(state, ROUND_CONSTANTS[t]! + schedule[t]!)
    for (let index = 0; index < 8; index++) hash[index]! += state[index]!
  }
  return hash
}

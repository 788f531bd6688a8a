/** SHA-256 (FIPS 180-4) of one block in plain JavaScript, for the solvers and for pages that have no `crypto.subtle`. */

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

/** A text's bytes, padded to the one block of 16 words (5.1.1) that a proof's input and a seed's always fit. */
export function paddedWords(text: string): Int32Array {
  const bytes = encoder.encode(text)
  const block = new DataView(new ArrayBuffer(64)) // reads and writes big-endian words
  new Uint8Array(block.buffer).set([...bytes, 0x80])
  block.setInt32(60, bytes.length * 8)
  return Int32Array.from({ length: 16 }, (_, index) => block.getInt32(4 * index))
}

/** The digest of such a text, in eight words. */
export function digestWords(text: string): Int32Array {
  const schedule = new Int32Array(64)
  schedule.set(paddedWords(text))
  const state = Int32Array.from(INITIAL_STATE)
  for (let t = 0; t < 64; t++) {
    if (t > 15)
      schedule[t] =
        sigma1(schedule[t - 2]!) + schedule[t - 7]! + sigma0(schedule[t - 15]!) + schedule[t - 16]!
    round(state, ROUND_CONSTANTS[t]! + schedule[t]!)
  }
  return state.map((word, index) => word + INITIAL_STATE[index]!)
}

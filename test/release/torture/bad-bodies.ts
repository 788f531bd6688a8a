/** Valid values, and texts that are almost valid. All as latin1 text: one character, one byte. */

import type { Random } from '../../harness/random.ts'

/** Valid values, which get through more checks than noise. Made for each input, so that they are still valid when sent. */
export interface Genuine {
  readonly siteKey: string
  readonly apiKey: string
  /** Solved, and issued to the address that sends the input. */
  solution(): Record<string, unknown>
  token(): string
}

/** One of these texts; only that one is made. */
export const oneOf = (random: Random, makes: readonly (() => string)[]): string => random.pick(makes)()

/** The text with a few bytes changed, removed, doubled, or inserted. */
export function mutated(random: Random, text: string): string {
  let result = text
  for (let count = random.between(1, 4); count > 0; count--) {
    const at = random.below(result.length + 1)
    const byte = String.fromCharCode(random.chance(0.3) ? random.pick(NASTY_BYTES) : random.below(256))
    const length = random.pick([0, 1, 1, 2, 8])
    const cut = result.slice(at, at + length)
    const put = random.pick(['', byte, byte.repeat(3), cut + cut])
    result = result.slice(0, at) + put + result.slice(at + length)
  }
  return result
}

const NASTY_BYTES = [0, 9, 10, 11, 13, 32, 34, 37, 44, 58, 61, 92, 124, 127, 128, 255] as const

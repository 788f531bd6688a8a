/** Input values of tests and benches: lists of words, and random numbers that are the same in every run. */

/** The words of some lines of text, for long lists of short values. */
export const words = (...lines: readonly string[]): string[] => lines.flatMap(line => line.split(' '))

/** Marsaglia's xorshift, 32 bits: good enough to vary inputs. @param seed not 0 */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    state >>>= 0
    return state
  }
}

/** @param random unsigned 32-bit integers */
export function randomHex(random: () => number, characters: number): string {
  let text = ''
  while (text.length < characters) text += random().toString(16).padStart(8, '0')
  return text.slice(0, characters)
}

/** Random inputs that are the same in every run. */

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

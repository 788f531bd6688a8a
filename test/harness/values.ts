/** Input values of tests and benches: lists of words and numbers, and random numbers that are the same in every run. */

/** The words of some lines of text, for long lists of short values. */
export const words = (...lines: readonly string[]): string[] => lines.flatMap(line => line.split(' '))

/** Numbers by their names, of lines such as `verify 200 ok: 3, scores 0.39: 1`. */
export function numbers(...lines: readonly string[]): Record<string, number> {
  const entries = lines.flatMap(line => line.split(', ')).map(entry => entry.split(': '))
  return Object.fromEntries(entries.map(([name, value]) => [name, Number(value)]))
}

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

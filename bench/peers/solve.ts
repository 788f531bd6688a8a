/** Solves the peers' challenges, as their widgets do. */

import { createHash } from 'node:crypto'

/** Puzzle n of Cap is to find a counter for which SHA-256(salt n ++ counter) starts with target n. */
export function capSolutions(token: string, puzzles: number, digits: number): number[] {
  return Array.from({ length: puzzles }, (_, index) => {
    const salt = derivedHex(`${token}${index + 1}`, 32)
    const target = derivedHex(`${token}${index + 1}d`, digits)
    // Five digits, as most counters have at Cap's own difficulty of 16 bits.
    let counter = 30_000
    while (!createHash('sha256').update(`${salt}${counter}`).digest('hex').startsWith(target)) counter++
    return counter
  })
}

/** FNV-1a of the seed (32 bits), then xorshift32. */
function derivedHex(seed: string, characters: number): string {
  let state = 0x811c9dc5
  for (const character of seed) state = Math.imul(state ^ character.charCodeAt(0), 0x01000193)
  let text = ''
  while (text.length < characters) {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    text += (state >>> 0).toString(16).padStart(8, '0')
  }
  return text.slice(0, characters)
}

/** The payload as altcha's widget posts it: JSON in base64. */
export async function altchaPayload(challenge: object): Promise<string> {
  const { solveChallenge } = await import('altcha-lib')
  const { deriveKey } = await import('altcha-lib/algorithms/sha')
  const solution = await solveChallenge({ challenge, deriveKey, counterStart: 0 })
  if (solution === null) throw new Error('altcha-lib finds no solution')
  return btoa(JSON.stringify({ challenge, solution }))
}

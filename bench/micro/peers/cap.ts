/**
 * @cap.js/server, with its storage hooks on Maps: no file, no network.
 *
 * It keeps each challenge in its store until it is redeemed, and each token until it is validated; nothing is signed.
 * A challenge is 50 puzzles of 16 bits by default, all of which are hashed to redeem it (by WebCrypto, on the threads of
 * libuv). It binds to no site and no address, gives no score and has no limits. Taking a challenge out of the store is
 * a read and a deletion, not one step.
 */

import { createHash } from 'node:crypto'
import type { ChallengeData } from '@cap.js/server'
import { type AsyncWork, isText, type Way } from '../case.ts'

const DEFAULT_PUZZLES = 50
/** Fewer than of ours: to solve so many puzzles takes longer. */
const INPUTS = 128
/** One hexadecimal digit instead of the default of four, to have them solved: a check costs the same. */
const EASY = 1
/** Tries start here, so that counters have as many digits as those of 16 bits. */
const FIRST_COUNTER = 30_000
const TOKEN_LIFETIME_MS = 1_200_000

async function newCap() {
  const { default: Cap } = await import('@cap.js/server')
  const challenges = new Map<string, ChallengeData>()
  const tokens = new Map<string, number>()
  const storage = {
    challenges: {
      store: async (token: string, data: ChallengeData) => void challenges.set(token, data),
      read: async (token: string) => challenges.get(token) ?? null,
      delete: async (token: string) => void challenges.delete(token),
      deleteExpired: async () => {
        for (const [token, { expires }] of challenges) if (expires < Date.now()) challenges.delete(token)
      },
    },
    tokens: {
      store: async (key: string, expires: number) => void tokens.set(key, expires),
      get: async (key: string) => tokens.get(key) ?? null,
      delete: async (key: string) => void tokens.delete(key),
      deleteExpired: async () => {
        for (const [key, expires] of tokens) if (expires < Date.now()) tokens.delete(key)
      },
    },
  }
  return { cap: new Cap({ noFSState: true, storage }), challenges, tokens }
}

async function challengeWork(): Promise<AsyncWork> {
  const { cap, challenges } = await newCap()
  const step = async () => isText(JSON.stringify(await cap.createChallenge()))
  return { kind: 'async', count: INPUTS, step, rewind: () => challenges.clear() }
}

async function verificationWork(puzzles: number): Promise<AsyncWork> {
  const { cap, challenges, tokens } = await newCap()
  const bodies: Buffer[] = []
  for (let index = 0; index < INPUTS; index++) {
    const { token } = await cap.createChallenge({ challengeCount: puzzles, challengeDifficulty: EASY })
    bodies.push(Buffer.from(JSON.stringify({ token, solutions: solutionsOf(token!, puzzles) })))
  }
  const unspent = [...challenges]
  const rewind = () => {
    tokens.clear()
    for (const [token, data] of unspent) challenges.set(token, data)
  }
  const step = async (index: number) => {
    const answer = await cap.redeemChallenge(JSON.parse(bodies[index]!.toString()))
    return answer.success && isText(JSON.stringify(answer))
  }
  return { kind: 'async', count: INPUTS, step, rewind }
}

async function redemptionWork(): Promise<AsyncWork> {
  const { cap, tokens } = await newCap()
  const bodies: Buffer[] = []
  for (let index = 0; index < INPUTS; index++) {
    const { token } = await cap.createChallenge({ challengeCount: 1, challengeDifficulty: EASY })
    const answer = await cap.redeemChallenge({ token: token!, solutions: solutionsOf(token!, 1) })
    bodies.push(Buffer.from(JSON.stringify({ token: answer.token })))
  }
  const unspent = [...tokens.keys()]
  const rewind = () => {
    for (const key of unspent) tokens.set(key, Date.now() + TOKEN_LIFETIME_MS)
  }
  const step = async (index: number) => {
    const { token } = JSON.parse(bodies[index]!.toString())
    const answer = await cap.validateToken(token)
    return answer.success && isText(JSON.stringify(answer))
  }
  return { kind: 'async', count: INPUTS, step, rewind }
}

/** As its browser side does: puzzle n is to find a counter for which SHA-256(salt n ++ counter) starts with target n. */
function solutionsOf(token: string, puzzles: number): number[] {
  return Array.from({ length: puzzles }, (_, index) => {
    const salt = derivedHex(`${token}${index + 1}`, 32)
    const target = derivedHex(`${token}${index + 1}d`, EASY)
    let counter = FIRST_COUNTER
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

export const CHALLENGE: Way = {
  isPackage: true,
  label: '@cap.js/server',
  note: 'kept in memory until redeemed; no site, no address, fixed difficulty',
  prepare: challengeWork,
}

export const VERIFICATION: Way = {
  isPackage: true,
  label: `@cap.js/server, ${DEFAULT_PUZZLES} puzzles`,
  note: 'as it comes; no site, address or score',
  prepare: () => verificationWork(DEFAULT_PUZZLES),
}

export const VERIFICATION_OF_ONE: Way = {
  isPackage: true,
  label: '@cap.js/server, 1 puzzle',
  note: 'the least that it can check; no site, address or score',
  prepare: () => verificationWork(1),
}

export const REDEMPTION: Way = {
  isPackage: true,
  label: '@cap.js/server',
  note: 'no API key, site, address or score',
  prepare: redemptionWork,
}

/**
 * The packages that whole requests are compared with.
 *
 * altcha-lib, version 2 of its protocol, with one SHA-256: the cheapest of its algorithms, and the nearest to ours. (Its
 * documentation's example has 5,000 rounds of PBKDF2.) Verification is by the function that all of its framework plug-ins
 * call, with its atomic store hook on a Map.
 *
 * It signs what it hands out and checks that, expiry, and the proof. It binds to no site and no address, gives no score, has
 * no limits, and issues no token. The customer's backend verifies the solution itself, so its verification is compared with
 * our verification plus redemption.
 *
 * Cap is the package @cap.js/server, with its storage hooks on Maps: no file, no network.
 *
 * It keeps each challenge in its store until it is redeemed, and each token until it is validated; nothing is signed.
 * A challenge is 50 puzzles of 16 bits by default, all of which are hashed to redeem it (by WebCrypto, on the threads of
 * libuv). It binds to no site and no address, gives no score and has no limits. Taking a challenge out of the store is
 * a read and a deletion, not one step.
 */

import { createHash } from 'node:crypto'
import type { ChallengeData } from '@cap.js/server'
import { type AsyncWork, isText, type Way } from './case.ts'

const SECRET = 'a secret for the bench, long enough to be accepted'
/** Fewer than of ours: to solve them takes longer. */
const [ALTCHA_INPUTS, CAP_INPUTS] = [256, 128]
/** Tries start here, so that counters have as many digits as those of 18 bits with altcha-lib, and 16 bits with Cap. */
const [ALTCHA_FIRST_COUNTER, CAP_FIRST_COUNTER] = [100_000, 30_000]

async function loadAltcha() {
  const { createChallenge, solveChallenge } = await import('altcha-lib')
  const { deriveKey } = await import('altcha-lib/algorithms/sha')
  const create = () =>
    createChallenge({
      algorithm: 'SHA-256',
      cost: 1,
      deriveKey,
      expiresAt: new Date(Date.now() + 3_600_000),
      hmacSignatureSecret: SECRET,
    })
  return { create, solveChallenge, deriveKey }
}

async function altchaChallenges(): Promise<AsyncWork> {
  const { create } = await loadAltcha()
  return { kind: 'async', count: ALTCHA_INPUTS, step: async () => isText(JSON.stringify(await create())) }
}

/** The payload as the widget posts it: JSON in base64. */
async function altchaVerifications(): Promise<AsyncWork> {
  const { create, solveChallenge, deriveKey } = await loadAltcha()
  const { verify } = await import('altcha-lib/frameworks/shared')
  const payloads: string[] = []
  for (let index = 0; index < ALTCHA_INPUTS; index++) {
    const challenge = await create()
    const solution = await solveChallenge({ challenge, deriveKey, counterStart: ALTCHA_FIRST_COUNTER })
    payloads.push(btoa(JSON.stringify({ challenge, solution })))
  }
  const used = new Map<string, boolean>()
  const store = {
    get: async (key: string) => used.get(key),
    set: async (key: string, value: boolean) => used.set(key, value),
    setIfAbsent: async (key: string, value: boolean) => {
      if (used.has(key)) return false
      used.set(key, value)
      return true
    },
  }
  const step = async (index: number) => {
    const { error } = await verify(payloads[index]!, deriveKey, SECRET, undefined, store)
    return error === null
  }
  return { kind: 'async', count: ALTCHA_INPUTS, step, rewind: () => used.clear() }
}

const DEFAULT_PUZZLES = 50
/** One hexadecimal digit instead of the default of four, to have them solved: a check costs the same. */
const EASY = 1
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

async function capChallenges(): Promise<AsyncWork> {
  const { cap, challenges } = await newCap()
  const step = async () => isText(JSON.stringify(await cap.createChallenge()))
  return { kind: 'async', count: CAP_INPUTS, step, rewind: () => challenges.clear() }
}

async function capVerifications(puzzles: number): Promise<AsyncWork> {
  const { cap, challenges, tokens } = await newCap()
  const bodies: Buffer[] = []
  for (let index = 0; index < CAP_INPUTS; index++) {
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
  return { kind: 'async', count: CAP_INPUTS, step, rewind }
}

async function capRedemptions(): Promise<AsyncWork> {
  const { cap, tokens } = await newCap()
  const bodies: Buffer[] = []
  for (let index = 0; index < CAP_INPUTS; index++) {
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
  return { kind: 'async', count: CAP_INPUTS, step, rewind }
}

/** As its browser side does: puzzle n is to find a counter for which SHA-256(salt n ++ counter) starts with target n. */
function solutionsOf(token: string, puzzles: number): number[] {
  return Array.from({ length: puzzles }, (_, index) => {
    const salt = derivedHex(`${token}${index + 1}`, 32)
    const target = derivedHex(`${token}${index + 1}d`, EASY)
    let counter = CAP_FIRST_COUNTER
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

/** By the case that each way belongs to. */
export const PACKAGES: Readonly<Record<'challenge' | 'verification' | 'redemption', readonly Way[]>> = {
  challenge: [
    byPackage('altcha-lib', 'signed; no site, no address, fixed difficulty', altchaChallenges),
    byPackage(
      '@cap.js/server',
      'kept in memory until redeemed; no site, no address, fixed difficulty',
      capChallenges,
    ),
  ],
  verification: [
    byPackage(
      'altcha-lib',
      'one SHA-256; no site, address, score or token: stands for our redemption too',
      altchaVerifications,
    ),
    byPackage(`@cap.js/server, ${DEFAULT_PUZZLES} puzzles`, 'as it comes; no site, address or score', () =>
      capVerifications(DEFAULT_PUZZLES),
    ),
    byPackage('@cap.js/server, 1 puzzle', 'the least that it can check; no site, address or score', () =>
      capVerifications(1),
    ),
  ],
  redemption: [byPackage('@cap.js/server', 'no API key, site, address or score', capRedemptions)],
}

function byPackage(label: string, note: string, prepare: () => Promise<AsyncWork>): Way {
  return { isPackage: true, label, note, prepare }
}

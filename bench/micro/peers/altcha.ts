/**
 * altcha-lib, version 2 of its protocol, with the cheapest of its algorithms, which is also the one nearest to ours: one
 * SHA-256 (its documentation's example has 5,000 rounds of PBKDF2). Verification is by the function that all of its
 * framework plug-ins call, with its atomic store hook on a Map.
 *
 * It signs what it hands out and checks that, expiry, and the proof. It binds to no site and no address, gives no
 * score, has no limits, and issues no token: the customer's backend verifies the solution itself, so its verification
 * stands beside both ours and our redemption.
 */

import type { Challenge, DeriveKey } from 'altcha-lib'
import { type AsyncWork, isText, type Way } from '../case.ts'

const SECRET = 'a secret for the bench, long enough to be accepted'
/** Fewer than of ours: to solve them takes longer. */
const INPUTS = 256
/** Tries start here, so that counters have as many digits as those of 18 bits would. */
const FIRST_COUNTER = 100_000

async function load() {
  const { createChallenge, solveChallenge } = await import('altcha-lib')
  const { deriveKey } = await import('altcha-lib/algorithms/sha')
  const create = () => newChallenge(createChallenge, deriveKey)
  return { create, solveChallenge, deriveKey }
}

function newChallenge(
  createChallenge: typeof import('altcha-lib').createChallenge,
  deriveKey: DeriveKey,
): Promise<Challenge> {
  const expiresAt = new Date(Date.now() + 3_600_000)
  return createChallenge({
    algorithm: 'SHA-256',
    cost: 1,
    deriveKey,
    expiresAt,
    hmacSignatureSecret: SECRET,
  })
}

async function challengeWork(): Promise<AsyncWork> {
  const { create } = await load()
  return { kind: 'async', count: INPUTS, step: async () => isText(JSON.stringify(await create())) }
}

/** The payload as the widget posts it: JSON in base64. */
async function verificationWork(): Promise<AsyncWork> {
  const { create, solveChallenge, deriveKey } = await load()
  const { verify } = await import('altcha-lib/frameworks/shared')
  const payloads: string[] = []
  for (let index = 0; index < INPUTS; index++) {
    const challenge = await create()
    const solution = await solveChallenge({ challenge, deriveKey, counterStart: FIRST_COUNTER })
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
  return { kind: 'async', count: INPUTS, step, rewind: () => used.clear() }
}

export const CHALLENGE: Way = {
  isPackage: true,
  label: 'altcha-lib',
  note: 'signed; no site, no address, fixed difficulty',
  prepare: challengeWork,
}

export const VERIFICATION: Way = {
  isPackage: true,
  label: 'altcha-lib',
  note: 'one SHA-256; no site, address, score or token: stands for our redemption too',
  prepare: verificationWork,
}

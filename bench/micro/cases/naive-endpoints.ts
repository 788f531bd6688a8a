/** The work of whole requests by node:crypto alone. */

import type { Solution } from '../../../src/protocol/wire.ts'
import type { Work } from '../case.ts'
import { isText } from '../case.ts'
import {
  CHALLENGE_LIFETIME_MS,
  DIFFICULTY,
  INPUTS,
  NOW_MS,
  SITE_KEY,
  scoreFor,
  THRESHOLD,
  TOKEN_LIFETIME_MS,
  visits,
} from '../inputs.ts'
import {
  isNaiveChallenge,
  isNaiveProof,
  type NaiveChallenge,
  naiveChallenge,
  naiveClaims,
  naiveRedemption,
  naiveSolution,
  naiveToken,
} from '../naive.ts'

const EXPIRES_AT_MS = NOW_MS + CHALLENGE_LIFETIME_MS

export function naiveChallengeWork(): Work {
  const all = visits()
  const step = (index: number) =>
    isText(JSON.stringify(naiveChallenge(SITE_KEY, all[index]!.addressText, DIFFICULTY, EXPIRES_AT_MS)))
  return { kind: 'sync', count: INPUTS, step }
}

/** The client sends the whole challenge back. */
function naiveVisits(): { addressText: string; body: Buffer }[] {
  return visits().map(({ addressText, solution }) => {
    const challenge = naiveChallenge(SITE_KEY, addressText, DIFFICULTY, EXPIRES_AT_MS)
    let { counter } = solution
    while (!isNaiveProof(challenge.nonce, counter, DIFFICULTY)) counter++
    return { addressText, body: Buffer.from(JSON.stringify({ ...solution, ...challenge, counter })) }
  })
}

function naiveToken5Minutes(nonce: string, ip: string, score: number): string {
  const times = { iat: NOW_MS, exp: NOW_MS + TOKEN_LIFETIME_MS }
  return naiveToken({ ...times, jti: nonce, sub: SITE_KEY, ip, score })
}

export function naiveVerificationWork(): Work {
  const all = naiveVisits()
  const step = (index: number) => {
    const { addressText, body } = all[index]!
    const solution = naiveSolution<Solution & NaiveChallenge>(body)
    if (solution === undefined || NOW_MS >= solution.expiresAt) return 0
    const { nonce, counter, difficulty } = solution
    if (!isNaiveChallenge(solution, SITE_KEY, addressText)) return 0
    if (!isNaiveProof(nonce, counter, difficulty)) return 0
    const score = scoreFor(solution, NOW_MS - 1000, difficulty)
    return score < THRESHOLD ? 0 : isText(naiveToken5Minutes(nonce, addressText, score))
  }
  return { kind: 'sync', count: INPUTS, step }
}

export function naiveRedemptionWork(): Work {
  const bodies = visits().map(({ nonce, addressText }) => {
    const token = naiveToken5Minutes(nonce, addressText, 0.9)
    return Buffer.from(JSON.stringify({ token, expectedIp: addressText }))
  })
  const used = new Map<string, number>()
  const step = (index: number) => {
    const request = naiveRedemption(bodies[index]!)
    const claims = request && naiveClaims(request.token)
    if (claims === undefined || NOW_MS >= claims.exp || claims.sub !== SITE_KEY) return 0
    if (request!.expectedIp !== claims.ip || used.has(claims.jti)) return 0
    used.set(claims.jti, NOW_MS)
    return isText(JSON.stringify({ success: true, score: claims.score, ip: claims.ip, solvedAt: claims.iat }))
  }
  return { kind: 'sync', count: INPUTS, step, rewind: () => used.clear() }
}

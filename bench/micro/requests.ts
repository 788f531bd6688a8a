/**
 * The work of whole requests in process, without HTTP. Compared with packages, every way includes the answer's text and single
 * use by a Map. Limits are left out, because the packages have none.
 */

import { formatAddress, isV4, networkKeys, parseAddress } from '../../src/domain/address.ts'
import { climbOf, difficultyOf } from '../../src/domain/difficulty.ts'
import { metersFrom, newMeter, trafficOf } from '../../src/domain/meters.ts'
import { checkProof } from '../../src/domain/pow.ts'
import type { Solution } from '../../src/protocol/wire.ts'
import { type Case, isText, over, plain, type SyncWork } from './case.ts'
import {
  addressKeyOf,
  bindingFor,
  CHALLENGE_LIFETIME_MS,
  claimsIn,
  claimsOf,
  DIFFICULTY,
  NOW_MS,
  nonceFor,
  redemptionBodies,
  redemptionIn,
  SITE,
  SITE_KEY,
  scoreFor,
  solutionIn,
  THRESHOLD,
  TOKEN_LIFETIME_MS,
  termsOf,
  tokenFor,
  type Visit,
  visits,
} from './inputs.ts'
import * as naive from './naive.ts'
import { PACKAGES } from './packages.ts'

export const PIPELINE = 'whole verification, no store'

/** Parse, validate, nonce, proof, score, token; undefined if it is refused. */
function verified({ body, address }: Visit): { nonce: string; token: string } | undefined {
  const solution = solutionIn(body)
  if (solution === undefined) return undefined
  const { nonce, counter } = solution
  const terms = termsOf(nonce, bindingFor(address))
  if (terms === undefined || NOW_MS >= terms.issuedAtMs + CHALLENGE_LIFETIME_MS) return undefined
  if (!checkProof(nonce, counter, terms.difficulty)) return undefined
  const score = scoreFor(solution, terms.issuedAtMs, terms.difficulty)
  if (score < THRESHOLD) return undefined
  return { nonce, token: tokenFor(claimsOf(nonce, counter, address, score)) }
}

function verification(): SyncWork {
  return over(visits(), visit => {
    const result = verified(visit)
    return result !== undefined && isText(result.token)
  })
}

function answeredVerification(): SyncWork {
  const spent = new Map<string, number>()
  const work = over(visits(), visit => {
    const result = verified(visit)
    if (result === undefined || spent.has(result.nonce)) return false
    spent.set(result.nonce, NOW_MS)
    return isText(`{"token":"${result.token}","passed":true,"expiresAt":${NOW_MS + TOKEN_LIFETIME_MS}}`)
  })
  return { ...work, rewind: () => spent.clear() }
}

function challenge(): SyncWork {
  return over(visits(), ({ address, randomBits }) => {
    const addressKey = addressKeyOf(address)
    // The store would say.
    const counts = { challenges: addressKey.length & 3, limit: 30, failures: 0, accepted: 0 }
    const meters = [...SITE.meterNames, ...networkKeys(address)].map(() => newMeter(NOW_MS))
    const source = { isV4: isV4(address), expected: 0 }
    const traffic = trafficOf(metersFrom(meters, SITE.meterNames.length), source, false)
    const difficulty = difficultyOf(SITE.record.difficulty, climbOf(counts, traffic))
    const nonce = nonceFor(NOW_MS, randomBits, bindingFor(address))
    const expiresAt = NOW_MS + CHALLENGE_LIFETIME_MS
    return isText(
      `{"nonce":"${nonce}","difficulty":${difficulty},"algorithm":"sha256","expiresAt":${expiresAt}}`,
    )
  })
}

function redemption(): SyncWork {
  const used = new Map<string, number>()
  const work = over(redemptionBodies(), body => {
    const request = redemptionIn(body)
    const claims = request && claimsIn(request.token)
    if (claims === undefined || NOW_MS >= claims.issuedAtMs + TOKEN_LIFETIME_MS) return false
    if (claims.siteTag !== SITE.tag || parseAddress(request!.expectedIp!) !== claims.address) return false
    if (used.has(claims.nonce)) return false
    used.set(claims.nonce, NOW_MS)
    const { score, address, issuedAtMs } = claims
    return isText(
      `{"success":true,"score":${score},"ip":"${formatAddress(address)}","solvedAt":${issuedAtMs}}`,
    )
  })
  return { ...work, rewind: () => used.clear() }
}

/** The client sends the whole challenge back. */
function naiveVisits(): { addressText: string; body: Buffer }[] {
  return visits().map(({ addressText, solution }) => {
    const made = naive.challengeFor(addressText)
    let { counter } = solution
    while (!naive.isProof(made.nonce, counter, DIFFICULTY)) counter++
    return { addressText, body: Buffer.from(JSON.stringify({ ...solution, ...made, counter })) }
  })
}

function naiveVerification(): SyncWork {
  return over(naiveVisits(), ({ addressText, body }) => {
    const solution = naive.solutionOf<Solution & naive.Challenge>(body)
    if (solution === undefined || NOW_MS >= solution.expiresAt) return false
    const { nonce, counter, difficulty } = solution
    if (!naive.isChallenge(solution, addressText) || !naive.isProof(nonce, counter, difficulty)) return false
    const score = scoreFor(solution, NOW_MS - 1000, difficulty)
    return score >= THRESHOLD && isText(naive.tokenFor(nonce, addressText, score))
  })
}

function naiveRedemption(): SyncWork {
  const bodies = visits().map(({ nonce, addressText }) => {
    const token = naive.tokenFor(nonce, addressText, 0.9)
    return Buffer.from(JSON.stringify({ token, expectedIp: addressText }))
  })
  const used = new Map<string, number>()
  const work = over(bodies, body => {
    const request = naive.redemptionOf(body)
    const claims = request && naive.claimsIn(request.token)
    if (claims === undefined || NOW_MS >= claims.exp || claims.sub !== SITE_KEY) return false
    if (request!.expectedIp !== claims.ip || used.has(claims.jti)) return false
    used.set(claims.jti, NOW_MS)
    return isText(JSON.stringify({ success: true, score: claims.score, ip: claims.ip, solvedAt: claims.iat }))
  })
  return { ...work, rewind: () => used.clear() }
}

export const REQUEST_CASES: readonly Case[] = [
  {
    name: PIPELINE,
    prepare: verification,
    others: plain('createHmac, createHash, JSON Web Token; score as ours', naiveVerification),
  },
  {
    name: 'whole challenge, answered',
    prepare: challenge,
    others: [
      ...plain('randomBytes, createHmac, JSON.stringify', () =>
        over(visits(), ({ addressText }) => isText(JSON.stringify(naive.challengeFor(addressText)))),
      ),
      ...PACKAGES.challenge,
    ],
  },
  {
    name: 'whole verification, answered',
    prepare: answeredVerification,
    others: PACKAGES.verification,
  },
  {
    name: 'whole redemption, answered',
    prepare: redemption,
    others: [...plain('JSON Web Token, HS256; single use by a Map', naiveRedemption), ...PACKAGES.redemption],
  },
]

/**
 * src/endpoints: the work of a whole request in process, without HTTP. Compared with peers, every variant includes the
 * answer's text and single use by a Map. Limits are left out, because the peers have none.
 */

import { formatAddress, parseAddress } from '../../../src/domain/address.ts'
import { difficultyFor } from '../../../src/domain/difficulty.ts'
import { checkProof } from '../../../src/domain/pow.ts'
import { SourceWatch } from '../../../src/domain/sources.ts'
import { type Case, isText, type Prepare } from '../case.ts'
import {
  addressKeyOf,
  bindingFor,
  CHALLENGE_LIFETIME_MS,
  claimsIn,
  claimsOf,
  INPUTS,
  NOW_MS,
  nonceFor,
  redemptionIn,
  SITE,
  scoreFor,
  solutionIn,
  THRESHOLD,
  TOKEN_LIFETIME_MS,
  termsOf,
  tokenFor,
  type Visit,
  visits,
} from '../inputs.ts'
import * as altcha from '../peers/altcha.ts'
import * as cap from '../peers/cap.ts'
import { naiveChallengeWork, naiveRedemptionWork, naiveVerificationWork } from './naive-endpoints.ts'
import { redemptionBodies } from './schemas.ts'

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

const verification: Prepare = () => {
  const all = visits()
  const step = (index: number) => {
    const result = verified(all[index]!)
    return result === undefined ? 0 : isText(result.token)
  }
  return { kind: 'sync', count: INPUTS, step }
}

const answeredVerification: Prepare = () => {
  const all = visits()
  const spent = new Map<string, number>()
  const step = (index: number) => {
    const result = verified(all[index]!)
    if (result === undefined || spent.has(result.nonce)) return 0
    spent.set(result.nonce, NOW_MS)
    return isText(`{"token":"${result.token}","passed":true,"expiresAt":${NOW_MS + TOKEN_LIFETIME_MS}}`)
  }
  return { kind: 'sync', count: INPUTS, step, rewind: () => spent.clear() }
}

const SOURCES = new SourceWatch(2, 1)

const challenge: Prepare = () => {
  const all = visits()
  const step = (index: number) => {
    const { address, randomBits } = all[index]!
    const addressKey = addressKeyOf(address)
    const difficulty = difficultyFor(SITE.record.difficulty, {
      addressChallenges: addressKey.length & 3, // the store would say
      addressLimit: 30,
      addressFailures: 0,
      source: SOURCES.of(address, NOW_MS),
      siteRate: 1,
      siteRateUsual: 1,
    })
    const nonce = nonceFor(NOW_MS, randomBits, bindingFor(address))
    return isText(
      `{"nonce":"${nonce}","difficulty":${difficulty},"algorithm":"sha256","expiresAt":${NOW_MS + CHALLENGE_LIFETIME_MS}}`,
    )
  }
  return { kind: 'sync', count: INPUTS, step }
}

const redemption: Prepare = () => {
  const bodies = redemptionBodies()
  const used = new Map<string, number>()
  const step = (index: number) => {
    const request = redemptionIn(bodies[index]!)
    const claims = request && claimsIn(request.token)
    if (claims === undefined || NOW_MS >= claims.issuedAtMs + TOKEN_LIFETIME_MS) return 0
    if (claims.siteTag !== SITE.tag || parseAddress(request!.expectedIp!) !== claims.address) return 0
    if (used.has(claims.nonce)) return 0
    used.set(claims.nonce, NOW_MS)
    const { score, address, issuedAtMs } = claims
    return isText(
      `{"success":true,"score":${score},"ip":"${formatAddress(address)}","solvedAt":${issuedAtMs}}`,
    )
  }
  return { kind: 'sync', count: INPUTS, step, rewind: () => used.clear() }
}

export const ENDPOINT_CASES: readonly Case[] = [
  {
    name: PIPELINE,
    area: 'endpoints',
    source: 'src/endpoints/verify.ts',
    step: verification,
    naive: () => naiveVerificationWork(),
    naiveNote: 'createHmac, createHash, JSON Web Token; score as ours',
  },
  {
    name: 'whole challenge, answered',
    area: 'endpoints',
    source: 'src/endpoints/challenge.ts',
    step: challenge,
    naive: () => naiveChallengeWork(),
    naiveNote: 'randomBytes, createHmac, JSON.stringify',
    peers: [altcha.CHALLENGE, cap.CHALLENGE],
  },
  {
    name: 'whole verification, answered',
    area: 'endpoints',
    source: 'src/endpoints/verify.ts',
    step: answeredVerification,
    peers: [altcha.VERIFICATION, cap.VERIFICATION, cap.VERIFICATION_OF_ONE],
  },
  {
    name: 'whole redemption, answered',
    area: 'endpoints',
    source: 'src/endpoints/verify-token.ts',
    step: redemption,
    naive: () => naiveRedemptionWork(),
    naiveNote: 'JSON Web Token, HS256; single use by a Map',
    peers: [cap.REDEMPTION],
  },
]

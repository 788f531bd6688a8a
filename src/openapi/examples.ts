/** Examples of the OpenAPI document: one visit from challenge to redemption. The proof is valid, the MACs are made up. */

import { PLAIN_ENVIRONMENT } from '../domain/score.ts'
import type { Challenge, Redemption, Solution } from '../protocol/wire.ts'

export const EXAMPLE_SITE_KEY = 'site_Example0Example0Exampl'
export const EXAMPLE_API_KEY = 'sk_Example0_an-example-is-no-secret-0000000000000000000'

const SOLVED_AT = 1_795_235_427_055
const NONCE = '0a9d05a605cbd13bec3ddec314598e14'
const COUNTER = 425_969
const CLAIMS = 'KwST4L1DoOIjysEiMAtMckrvPnfxR3-JPS6mIx5mMgE7hmo1'
const HMAC = 'jxwvAxCwpg9g0gDj0JBHGAmC50OLEmEkQCQoQxxAaD8'

export const CHALLENGE: Challenge = {
  nonce: NONCE,
  difficulty: 18,
  algorithm: 'sha256',
  expiresAt: 1_795_235_452_107,
}

export const SOLUTION: Solution = {
  nonce: NONCE,
  counter: COUNTER,
  solveTimeMs: 140,
  fingerprintHash: '66d6b265d8b46d4e5dd501c1289cc932f68e7544376b8d7034efa0477ab2de4c',
  environment: PLAIN_ENVIRONMENT,
}

export const PASSED = {
  token: `${SOLVED_AT}|${NONCE}|${COUNTER}|${CLAIMS}|${HMAC}`,
  passed: true,
  expiresAt: SOLVED_AT + 300_000,
} as const

export const REDEMPTION: Redemption = {
  token: PASSED.token,
  expectedIp: '203.0.113.7',
  idempotencyKey: 'order 17',
}

export const REDEEMED = { success: true, score: 1, ip: '203.0.113.7', solvedAt: SOLVED_AT } as const

export const SITEVERIFY_REQUEST = {
  secret: EXAMPLE_API_KEY,
  response: PASSED.token,
  remoteip: '203.0.113.7',
} as const

export const SITEVERIFY_SUCCESS = {
  success: true,
  score: 1,
  challenge_ts: new Date(SOLVED_AT).toISOString(),
  hostname: 'shop.example',
  'error-codes': [],
} as const

/** Schemas of answers, which a test compares with real ones. The examples are one visit, with a valid proof and made-up MACs. */

import { PLAIN_ENVIRONMENT } from '../domain/score.ts'
import { NONCE } from '../http/schemas.ts'
import Type from '../packages/typebox.ts'
import { DIFFICULTY_MAX, DIFFICULTY_MIN, PUZZLES } from '../protocol/proof.ts'
import type { Challenge, Redemption, Solution } from '../protocol/wire.ts'

const UNIX_MS = 'Unix time in milliseconds'

export const ChallengeSchema = Type.Object(
  {
    nonce: NONCE,
    difficulty: Type.Integer({
      minimum: DIFFICULTY_MIN,
      maximum: DIFFICULTY_MAX,
      description: 'Leading zero bits that the hash must have.',
    }),
    algorithm: Type.String({
      enum: PUZZLES,
      description: "The site's puzzle: what the counter is tried with.",
    }),
    expiresAt: Type.Integer({ description: `${UNIX_MS}. A solution must arrive before.` }),
  },
  { description: 'A proof of work, bound to the site and to the address that asked.' },
)

export const PassedSchema = Type.Object(
  {
    token: Type.String({
      pattern: '^\\d{13}\\|[0-9a-f]{32}\\|\\d{1,16}\\|[A-Za-z0-9_-]{48,}\\|[A-Za-z0-9_-]{43}$',
      description: 'To be redeemed once by the backend of the site. Do not depend on what is inside.',
    }),
    passed: Type.Literal(true),
    expiresAt: Type.Integer({ description: `${UNIX_MS}. The token can be redeemed until then.` }),
  },
  { description: 'The visitor passed.' },
)

export const FailedSchema = Type.Object(
  { token: Type.Null(), passed: Type.Literal(false), expiresAt: Type.Null() },
  { description: 'The visitor did not pass. Why is in the log of the service alone.' },
)

const SCORE = Type.Number({ minimum: 0, maximum: 1, description: '0 is a bot, 1 a person.' })

export const RedeemedSchema = Type.Object(
  {
    success: Type.Literal(true),
    score: SCORE,
    ip: Type.String({ description: 'The IPv4 or IPv6 address that solved the challenge.' }),
    solvedAt: Type.Integer({ description: `${UNIX_MS}. When it was solved.` }),
  },
  { description: 'The token is good, and now used.' },
)

export const SiteverifySuccessSchema = Type.Object(
  {
    success: Type.Literal(true),
    score: SCORE,
    challenge_ts: Type.String({
      pattern: '^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}\\.\\d{3}Z$',
      description: 'When the challenge was solved, ISO 8601.',
    }),
    hostname: Type.Optional(
      Type.String({
        description: 'Of the page that got the token, or of the only origin that the site allows, if known.',
      }),
    ),
    action: Type.String({ description: 'As it came to POST /verify; empty without one.' }),
    cdata: Type.Optional(Type.String({ description: 'As it came to POST /verify.' })),
  },
  { description: 'The token is good, and now used.' },
)

const SOLVED_AT = 1_795_235_427_055
const NONCE_EXAMPLE = '0a9d05a605cbd13bec3ddec314598e14'
const COUNTER = 425_969
const CLAIMS = 'KwST4L1DoOIjysEiMAtMckrvPnfxR3-JPS6mIx5mMgE7hmo1'
const HMAC = 'jxwvAxCwpg9g0gDj0JBHGAmC50OLEmEkQCQoQxxAaD8'
const TOKEN = `${SOLVED_AT}|${NONCE_EXAMPLE}|${COUNTER}|${CLAIMS}|${HMAC}`
const IP = '203.0.113.7'

export const EXAMPLES = {
  siteKey: 'site_Example0Example0Exampl',
  challenge: {
    nonce: NONCE_EXAMPLE,
    difficulty: 18,
    algorithm: 'sha256',
    expiresAt: 1_795_235_452_107,
  } satisfies Challenge,
  solution: {
    nonce: NONCE_EXAMPLE,
    counter: COUNTER,
    solveTimeMs: 140,
    fingerprintHash: '66d6b265d8b46d4e5dd501c1289cc932f68e7544376b8d7034efa0477ab2de4c',
    environment: PLAIN_ENVIRONMENT,
  } satisfies Solution,
  passed: { token: TOKEN, passed: true, expiresAt: SOLVED_AT + 300_000 },
  failed: { token: null, passed: false, expiresAt: null },
  redemption: { token: TOKEN, expectedIp: IP, idempotencyKey: 'order 17' } satisfies Redemption,
  redeemed: { success: true, score: 1, ip: IP, solvedAt: SOLVED_AT },
  siteverifyRequest: {
    secret: 'sk_Example0_an-example-is-no-secret-0000000000000000000',
    response: TOKEN,
    remoteip: IP,
  },
  siteverifySuccess: {
    success: true,
    score: 1,
    challenge_ts: new Date(SOLVED_AT).toISOString(),
    hostname: 'shop.example',
    action: 'login',
  },
}

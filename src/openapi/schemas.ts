/** Schemas of the endpoints' answers. (The schemas of requests are in schemas.ts and siteverify.ts.) */

import Type, { type TSchema } from '#typebox'
import type { SiteverifyCode } from '../http/replies.ts'
import { NONCE } from '../http/schemas.ts'
import { DIFFICULTY_MAX, DIFFICULTY_MIN } from '../protocol/proof.ts'

const UNIX_MS = 'Unix time in milliseconds'

export const ChallengeSchema = Type.Object(
  {
    nonce: NONCE,
    difficulty: Type.Integer({
      minimum: DIFFICULTY_MIN,
      maximum: DIFFICULTY_MAX,
      description: 'Leading zero bits that the digest must have.',
    }),
    algorithm: Type.Literal('sha256'),
    expiresAt: Type.Integer({ description: `${UNIX_MS}. A solution must arrive before.` }),
  },
  { description: 'A proof of work, bound to the site and to the address that asked.' },
)

export const PassedSchema = Type.Object(
  {
    token: Type.String({
      pattern: '^\\d{13}\\|[0-9a-f]{32}\\|\\d{1,16}\\|[A-Za-z0-9_-]{48}\\|[A-Za-z0-9_-]{43}$',
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
      Type.String({ description: 'Of the origin that the site allows, if that is exactly one.' }),
    ),
    'error-codes': Type.Array(Type.String(), { maxItems: 0 }),
  },
  { description: 'The token is good, and now used.' },
)

/** @param codes the possible error codes */
export function siteverifyFailureSchema(codes: readonly SiteverifyCode[]): TSchema {
  return Type.Object({
    success: Type.Literal(false),
    'error-codes': Type.Array(Type.Enum([...codes]), { minItems: 1, maxItems: 1 }),
    messages: Type.Array(Type.String(), { minItems: 1, maxItems: 1, description: 'For a person.' }),
  })
}

const ERROR = {
  error: Type.String({ minLength: 1, description: 'For a person; may change.' }),
}
const FIELD = Type.Optional(Type.String({ description: 'The field of the body that is wrong.' }))

export interface ErrorForm {
  readonly codes: readonly string[]
  /** Whether an error may name a field of the body. */
  readonly namesField: boolean
  /** Whether an error has `success: false`. */
  readonly hasSuccess: boolean
}

export function errorSchema({ codes, namesField, hasSuccess }: ErrorForm): TSchema {
  return Type.Object({
    ...(hasSuccess ? { success: Type.Literal(false) } : {}),
    ...ERROR,
    code: Type.Enum([...codes], { description: 'Stable.' }),
    ...(namesField ? { field: FIELD } : {}),
  })
}

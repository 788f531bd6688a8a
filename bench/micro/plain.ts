/**
 * A whole verification by node:crypto and the language alone, as most services of this kind do it: an object for each hash, new
 * buffers for each comparison, a signed challenge that the client sends back, a JSON Web Token (RFC 7519).
 */

import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import type { Solution } from '../../src/protocol/wire.ts'
import { isText, over, type Work } from './work.ts'

const SECRET = 'a secret for the bench, long enough to be accepted'
const [CHALLENGE_LIFETIME_MS, TOKEN_LIFETIME_MS] = [120_000, 300_000]
const TOKEN_HEADER = Buffer.from('{"alg":"HS256","typ":"JWT"}').toString('base64url')

interface Challenge {
  readonly nonce: string
  readonly difficulty: number
  readonly expiresAt: number
}

export function plainVerification(
  visits: readonly { readonly addressText: string; readonly solution: Solution }[],
  nowMs: number,
  siteKey: string,
  bits: number,
  scored: (solution: Solution) => number,
): Work {
  const requests = visits.map(({ addressText, solution }) => {
    const challenge = { nonce: solution.nonce, difficulty: bits, expiresAt: nowMs + CHALLENGE_LIFETIME_MS }
    const signature = signatureOf(challenge, siteKey, addressText)
    return { addressText, body: Buffer.from(JSON.stringify({ ...solution, ...challenge, signature })) }
  })
  return over(requests, ({ addressText, body }) => {
    const sent = parsed(body)
    if (sent === undefined || nowMs >= sent.expiresAt) return false
    if (!isSameText(sent.signature, signatureOf(sent, siteKey, addressText))) return false
    if (!isProof(sent.nonce, sent.counter, sent.difficulty)) return false
    const times = { iat: nowMs, exp: nowMs + TOKEN_LIFETIME_MS }
    return isText(signed({ ...times, jti: sent.nonce, sub: siteKey, ip: addressText, score: scored(sent) }))
  })
}

function signatureOf({ nonce, difficulty, expiresAt }: Challenge, siteKey: string, ip: string): string {
  const text = `${nonce}|${difficulty}|${expiresAt}|${siteKey}|${ip}`
  return createHmac('sha256', SECRET).update(text).digest('hex')
}

function isSameText(a: string, b: string): boolean {
  const [left, right] = [Buffer.from(a), Buffer.from(b)]
  return left.length === right.length && timingSafeEqual(left, right)
}

function isProof(nonce: string, counter: number, bits: number): boolean {
  const digest = createHash('sha256').update(`${nonce}${counter}`).digest()
  return Math.clz32(digest.readUInt32BE(0)) >= bits
}

function signed(claims: object): string {
  const text = `${TOKEN_HEADER}.${Buffer.from(JSON.stringify(claims)).toString('base64url')}`
  return `${text}.${createHmac('sha256', SECRET).update(text).digest('base64url')}`
}

/** A body checked field by field; undefined if it is refused. */
function parsed(bytes: Buffer): (Solution & Challenge & { readonly signature: string }) | undefined {
  const body = JSON.parse(bytes.toString())
  if (typeof body !== 'object' || body === null || typeof body.signature !== 'string') return undefined
  if (typeof body.nonce !== 'string' || !/^[0-9a-f]{32}$/.test(body.nonce)) return undefined
  if (!Number.isSafeInteger(body.counter) || body.counter < 0) return undefined
  if (body.solveTimeMs !== undefined && !(body.solveTimeMs >= 0)) return undefined
  if (typeof body.fingerprintHash !== 'string' || !/^[0-9a-f]{64}$/i.test(body.fingerprintHash))
    return undefined
  for (const flag of Object.values(body.environment ?? {})) if (typeof flag !== 'boolean') return undefined
  return body
}

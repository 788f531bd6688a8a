/**
 * The same steps with node:crypto alone, as most services of this kind do them: an object per hash, new buffers for each
 * comparison, text fields with an HMAC. Each use notes what it leaves out.
 */

import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { CHALLENGE_LIFETIME_MS, DIFFICULTY, NOW_MS, SITE_KEY, TOKEN_LIFETIME_MS } from './inputs.ts'

const SECRET = 'a secret for the bench, long enough to be accepted'

/** What a challenge is where the client carries it: plain fields, signed. */
export interface Challenge {
  readonly nonce: string
  readonly difficulty: number
  readonly expiresAt: number
  readonly signature: string
}

export function challengeFor(ip: string): Challenge {
  const nonce = randomBytes(16).toString('hex')
  const terms = { nonce, difficulty: DIFFICULTY, expiresAt: NOW_MS + CHALLENGE_LIFETIME_MS }
  return { ...terms, signature: challengeHmac(terms, ip) }
}

export function isChallenge(challenge: Challenge, ip: string): boolean {
  return isSameText(challenge.signature, challengeHmac(challenge, ip))
}

function challengeHmac({ nonce, difficulty, expiresAt }: Omit<Challenge, 'signature'>, ip: string): string {
  const text = `${nonce}|${difficulty}|${expiresAt}|${SITE_KEY}|${ip}`
  return createHmac('sha256', SECRET).update(text).digest('hex')
}

export function isSameText(a: string, b: string): boolean {
  const [left, right] = [Buffer.from(a), Buffer.from(b)]
  return left.length === right.length && timingSafeEqual(left, right)
}

/** The zero bits counted in the hexadecimal digest, a character each four. */
export function isProof(nonce: string, counter: number, difficulty: number): boolean {
  const digest = createHash('sha256').update(`${nonce}${counter}`).digest('hex')
  const zeros = difficulty >> 2
  if (!digest.startsWith('0'.repeat(zeros))) return false
  return Math.clz32(Number.parseInt(digest[zeros]!, 16)) - 28 >= (difficulty & 3)
}

export interface Claims {
  readonly iat: number
  readonly exp: number
  readonly jti: string
  readonly sub: string
  readonly ip: string
  readonly score: number
}

const TOKEN_HEADER = Buffer.from('{"alg":"HS256","typ":"JWT"}').toString('base64url')

/** A JSON Web Token (RFC 7519) with HS256. */
export function tokenFor(nonce: string, ip: string, score: number): string {
  const times = { iat: NOW_MS, exp: NOW_MS + TOKEN_LIFETIME_MS }
  const claims: Claims = { ...times, jti: nonce, sub: SITE_KEY, ip, score }
  const text = `${TOKEN_HEADER}.${Buffer.from(JSON.stringify(claims)).toString('base64url')}`
  return `${text}.${createHmac('sha256', SECRET).update(text).digest('base64url')}`
}

/** undefined unless it is genuine. */
export function claimsIn(token: string): Claims | undefined {
  const [header, payload, signature] = token.split('.')
  if (header === undefined || payload === undefined || signature === undefined) return undefined
  const expected = createHmac('sha256', SECRET).update(`${header}.${payload}`).digest()
  const presented = Buffer.from(signature, 'base64url')
  if (presented.length !== expected.length || !timingSafeEqual(presented, expected)) return undefined
  return JSON.parse(Buffer.from(payload, 'base64url').toString())
}

/** A body checked field by field; undefined if it is refused. */
export function solutionOf<Body>(bytes: Buffer): Body | undefined {
  const body = JSON.parse(bytes.toString())
  if (typeof body !== 'object' || body === null) return undefined
  if (typeof body.nonce !== 'string' || !/^[0-9a-f]{32}$/.test(body.nonce)) return undefined
  if (!Number.isSafeInteger(body.counter) || body.counter < 0) return undefined
  if (body.solveTimeMs !== undefined && !(body.solveTimeMs >= 0)) return undefined
  if (typeof body.fingerprintHash !== 'string' || !/^[0-9a-f]{64}$/i.test(body.fingerprintHash))
    return undefined
  if (body.environment !== undefined) {
    if (typeof body.environment !== 'object' || body.environment === null) return undefined
    for (const flag of Object.values(body.environment)) if (typeof flag !== 'boolean') return undefined
  }
  return body
}

/** A body checked field by field; undefined if it is refused. */
export function redemptionOf(bytes: Buffer): { token: string; expectedIp?: string } | undefined {
  const body = JSON.parse(bytes.toString())
  if (typeof body !== 'object' || body === null) return undefined
  if (typeof body.token !== 'string' || body.token === '' || body.token.length > 1024) return undefined
  if (body.expectedIp !== undefined && typeof body.expectedIp !== 'string') return undefined
  return body
}

/**
 * A sliding window as a list of times; one more request is added if it fits.
 *
 * @returns the new list, or undefined if it does not fit
 */
export function windowWith(times: readonly number[], nowMs: number, limit: number): number[] | undefined {
  const live = times.filter(time => nowMs - time < 60_000)
  if (live.length >= limit) return undefined
  live.push(nowMs)
  return live
}

/** Attempts to get more from a solved challenge or a token than one redemption by its owner. */

import { Keyring } from '../../../src/domain/keyring.ts'
import { mintToken, type TokenClaims } from '../../../src/domain/token.ts'
import type { Solution } from '../../../src/protocol/wire.ts'

interface Refusal {
  readonly status: number
  readonly code: string
}

/** A solved challenge that is submitted in another way than it was issued. */
export interface SolutionTheft extends Refusal {
  readonly attack: string
  /** Whether the owner has submitted it already. */
  readonly isSpent: boolean
  /** The body that the thief sends. */
  readonly body: (solution: Solution) => string
  readonly site?: 'another'
  readonly from?: 'another'
}

const refusal = (status: number, code: string): Refusal => ({ status, code })
const INVALID_BODY = refusal(400, 'invalid-body')
const INVALID_NONCE = refusal(400, 'invalid-nonce')
const NONCE_USED = refusal(400, 'nonce-used')
const IP_MISMATCH = refusal(403, 'ip-mismatch')

const asIs = (solution: Solution) => JSON.stringify(solution)

/** The body with one field in another spelling. */
function withText(solution: Solution, field: 'nonce' | 'counter', text: string): string {
  const { [field]: _, ...rest } = solution
  return `{"${field}":${text},${JSON.stringify(rest).slice(1)}`
}

const counterAs = (spelling: (digits: string) => string) => (solution: Solution) =>
  withText(solution, 'counter', spelling(String(solution.counter)))
const nonceAs = (spelling: (nonce: string) => string) => (solution: Solution) =>
  withText(solution, 'nonce', spelling(solution.nonce))

/** Spellings that JSON reads as the same integer. The contract's test has those that JSON or the schema refuses. */
const EQUAL_COUNTERS: Readonly<Record<string, (digits: string) => string>> = {
  'its own': digits => digits,
  'a float': digits => `${digits}.0`,
  'an exponent of zero': digits => `${digits}e0`,
  'a shifted exponent': digits => `${digits}00E-2`,
  'a positive exponent': digits => `0.${digits}e+${digits.length}`,
  'a float that rounds to it': digits => `${digits}.00000000000000000001`,
  'space around it': digits => ` \n${digits}\t`,
  'a point in another object': digits => `${digits},"x":{"counter":${digits}.0}`,
  'its name escaped': digits => `5,"\\u0063ounter":${digits}`,
  'a point, and its own behind': digits => `${digits}.0,"counter":${digits}`,
  'a second field': digits => `5,"counter":${digits}`,
}

const unspent = (attack: string, refused: Refusal, more: Partial<SolutionTheft> = {}): SolutionTheft => {
  return { attack, isSpent: false, body: asIs, ...refused, ...more }
}
const spent = (attack: string, refused: Refusal, more: Partial<SolutionTheft> = {}): SolutionTheft =>
  unspent(attack, refused, { isSpent: true, ...more })

export const SOLUTION_THEFTS: readonly SolutionTheft[] = [
  unspent('from another address', IP_MISMATCH, { from: 'another' }),
  unspent('at another site', INVALID_NONCE, { site: 'another' }),
  unspent('at another site from another address', INVALID_NONCE, { site: 'another', from: 'another' }),
  spent('replayed', NONCE_USED),
  spent('replayed from another address', IP_MISMATCH, { from: 'another' }),
  spent('replayed with escapes', NONCE_USED, {
    body: nonceAs(nonce => `"\\u00${hexOf(nonce)}${nonce.slice(1)}"`),
  }),
  unspent('one bit of it changed', INVALID_NONCE, { body: changedNonce(20) }),
  unspent('its time changed', INVALID_NONCE, { body: changedNonce(5) }),
  unspent('its difficulty lowered', INVALID_NONCE, { body: changedNonce(11) }),
  unspent('its address part changed', IP_MISMATCH, { body: changedNonce(31) }),
  ...Object.entries(EQUAL_COUNTERS).map(([name, spelling]) =>
    spent(`replayed, the counter with: ${name}`, NONCE_USED, { body: counterAs(spelling) }),
  ),
]

function hexOf(nonce: string): string {
  return nonce.charCodeAt(0).toString(16)
}

function changedNonce(at: number): (solution: Solution) => string {
  return nonceAs(nonce => {
    const changed = (Number.parseInt(nonce[at]!, 16) ^ 1).toString(16)
    return `"${nonce.slice(0, at)}${changed}${nonce.slice(at + 1)}"`
  })
}

/** A token that belongs to somebody else or was changed, as the thief sends it. */
export interface TokenTheft extends Refusal {
  readonly attack: string
  readonly isSpent: boolean
  readonly make: (token: string, claims: TokenClaims) => string
  readonly apiKey?: 'another site’s' | 'unknown' | 'the site key'
  readonly expectedIp?: string
  readonly idempotencyKey?: string
}

const INVALID_TOKEN = refusal(400, 'invalid-token')
const TOKEN_USED = refusal(400, 'token-used')
const BAD_CREDENTIALS = refusal(401, 'invalid-credentials')
const OTHER_IP = { ...refusal(400, 'ip-mismatch'), expectedIp: '203.0.113.99' } as const
const OTHER_KEY = { ...refusal(400, 'site-mismatch'), apiKey: 'another site’s' } as const

type Segments = [issuedAtMs: string, nonce: string, counter: string, claims: string, hmac: string]
const segmentsAs = (make: (...segments: Segments) => readonly string[]) => (token: string) =>
  make(...(token.split('|') as Segments)).join('|')

const BASE64 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'

/** The text with the lowest bits of its last character changed: in 43 characters these bits belong to no byte. */
function spareBits(text: string, bits: number): string {
  return text.slice(0, -1) + BASE64[BASE64.indexOf(text.at(-1)!) ^ bits]
}

const flipped = (text: string, at: number) =>
  text.slice(0, at) + BASE64[BASE64.indexOf(text[at]!) ^ 1] + text.slice(at + 1)

/** test/domain/token.test.ts and the contract change every character; these change what may mean the same. */
const ALTERED: Readonly<Record<string, (token: string) => string>> = {
  'a later time': segmentsAs((time, ...rest) => [String(Number(time) + 1), ...rest]),
  'an upper-case nonce': segmentsAs((a, nonce, ...rest) => [a, nonce.toUpperCase(), ...rest]),
  'another nonce': segmentsAs((a, nonce, ...rest) => [a, nonce.slice(1) + nonce[0], ...rest]),
  'a counter with a leading zero': segmentsAs((a, b, counter, ...rest) => [a, b, `0${counter}`, ...rest]),
  'a counter that is a float': segmentsAs((a, b, counter, ...rest) => [a, b, `${counter}.0`, ...rest]),
  'its last claim changed': segmentsAs((a, b, c, claims, e) => [a, b, c, flipped(claims, 43), e]),
  'claims with padding': segmentsAs((a, b, c, claims, e) => [a, b, c, `${claims}=`, e]),
  'its hmac changed': segmentsAs((...all) => [...all.slice(0, 4), flipped(all[4], 0)]),
  'an hmac with padding': segmentsAs((...all) => [...all.slice(0, 4), `${all[4]}=`]),
  'an hmac with the spare bits 1': segmentsAs((...all) => [...all.slice(0, 4), spareBits(all[4], 1)]),
  'an hmac with the spare bits 2': segmentsAs((...all) => [...all.slice(0, 4), spareBits(all[4], 2)]),
  'the other base64 alphabet': token => swapped(token),
  'a sixth segment': token => `${token}|`,
  'a byte order mark in front': token => `\ufeff${token}`,
  'a full-width bar': token => token.replaceAll('|', '\uff5c'),
}

/** The token with `+` and `/` for `-` and `_`. A token without those gets a `+` as the first character of its claims. */
function swapped(token: string): string {
  const other = token.replaceAll('-', '+').replaceAll('_', '/')
  return other === token
    ? segmentsAs((a, b, c, claims, e) => [a, b, c, `+${claims.slice(1)}`, e])(token)
    : other
}

export const OTHER_SECRET = 'another secret, also of more than thirty-two characters'
const inAnotherMemory = ({ storeEpoch }: TokenClaims) => ({ storeEpoch: (storeEpoch ^ 1) >>> 0 })
const withAnotherCounter = ({ counter }: TokenClaims) => ({ counter: counter + 1 })

type Row = readonly [attack: string, how: Refusal & Partial<TokenTheft>, make?: TokenTheft['make']]

/** @param secret the service's own: who knows it can make tokens, but cannot erase redemption records */
export function tokenThefts(secret: string): TokenTheft[] {
  const signedAnew =
    (change: (claims: TokenClaims) => Partial<TokenClaims>, by = secret) =>
    (_token: string, claims: TokenClaims) =>
      mintToken(new Keyring([by]), { ...claims, ...change(claims) })
  const issuedLater = (ms: number) => signedAnew(({ issuedAtMs }) => ({ issuedAtMs: issuedAtMs + ms }))
  const altered = Object.entries(ALTERED)
  const unspentRows: readonly Row[] = [
    ['with another site’s key', OTHER_KEY],
    ['with a key that nobody has', { ...BAD_CREDENTIALS, apiKey: 'unknown' }],
    ['with the site key', { ...BAD_CREDENTIALS, apiKey: 'the site key' }],
    ['for another address', OTHER_IP],
    ['for an address that is none', { ...INVALID_BODY, expectedIp: '127.1' }],
    ['of another master secret', INVALID_TOKEN, signedAnew(() => ({}), OTHER_SECRET)],
    ['of a store that lost its memory', refusal(400, 'token-forgotten'), signedAnew(inAnotherMemory)],
    ['from the future', INVALID_TOKEN, issuedLater(3_600_000)],
    ['of an hour ago', refusal(400, 'token-expired'), issuedLater(-3_600_000)],
    ...altered.map(([name, make]): Row => [`with ${name}`, INVALID_TOKEN, make]),
  ]
  const spentRows: readonly Row[] = [
    ['replayed', TOKEN_USED],
    ['replayed with an idempotency key', { ...TOKEN_USED, idempotencyKey: 'thief' }],
    ['replayed for another address', OTHER_IP],
    ['replayed with another site’s key', OTHER_KEY],
    ['replayed, signed anew with another time', TOKEN_USED, issuedLater(1)],
    ['replayed, signed anew with another counter', TOKEN_USED, signedAnew(withAnotherCounter)],
    ...altered.map(([name, make]): Row => [`replayed with ${name}`, INVALID_TOKEN, make]),
  ]
  const theftOf =
    (isSpent: boolean) =>
    ([attack, how, make = token => token]: Row): TokenTheft => ({ attack, isSpent, make, ...how })
  return [...unspentRows.map(theftOf(false)), ...spentRows.map(theftOf(true))]
}

/** How /siteverify names a refusal of /verify-token; its status is 200. */
export const SITEVERIFY_CODES: Readonly<Record<string, string>> = {
  'invalid-token': 'invalid-input-response',
  'token-forgotten': 'timeout-or-duplicate',
  'token-used': 'timeout-or-duplicate',
  'token-expired': 'timeout-or-duplicate',
  'site-mismatch': 'sitekey-secret-mismatch',
  'ip-mismatch': 'remoteip-mismatch',
  'invalid-body': 'invalid-remoteip',
  'invalid-credentials': 'invalid-input-secret',
}

/** Attempts to get more from a solved challenge or a token than one redemption by its owner. */

import { Keyring } from '../../src/domain/keyring.ts'
import { mintToken, type TokenClaims } from '../../src/domain/token.ts'
import type { Solution } from '../../src/protocol/wire.ts'

interface Refused {
  readonly attack: string
  readonly status: number
  readonly code: string
}

/** A solved challenge that is submitted in another way than it was issued. */
export interface SolutionTheft extends Refused {
  /** Whether the owner has submitted it already. */
  readonly isSpent: boolean
  /** The body that the thief sends. */
  readonly body: (solution: Solution) => string
  readonly site?: 'another'
  readonly from?: 'another'
}

const NONCE_USED = { status: 400, code: 'nonce-used' } as const

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

export const SOLUTION_THEFTS: readonly SolutionTheft[] = [
  {
    attack: 'from another address',
    status: 403,
    code: 'ip-mismatch',
    isSpent: false,
    body: asIs,
    from: 'another',
  },
  {
    attack: 'at another site',
    status: 400,
    code: 'invalid-nonce',
    isSpent: false,
    body: asIs,
    site: 'another',
  },
  {
    attack: 'at another site from another address',
    status: 400,
    code: 'invalid-nonce',
    isSpent: false,
    body: asIs,
    site: 'another',
    from: 'another',
  },
  { attack: 'replayed', ...NONCE_USED, isSpent: true, body: asIs },
  {
    attack: 'replayed from another address',
    status: 403,
    code: 'ip-mismatch',
    isSpent: true,
    body: asIs,
    from: 'another',
  },
  {
    attack: 'replayed with escapes',
    ...NONCE_USED,
    isSpent: true,
    body: nonceAs(nonce => `"\\u00${hexOf(nonce)}${nonce.slice(1)}"`),
  },
  {
    attack: 'one bit of it changed',
    status: 400,
    code: 'invalid-nonce',
    isSpent: false,
    body: changedNonce(20),
  },
  { attack: 'its time changed', status: 400, code: 'invalid-nonce', isSpent: false, body: changedNonce(5) },
  {
    attack: 'its difficulty lowered',
    status: 400,
    code: 'invalid-nonce',
    isSpent: false,
    body: changedNonce(11),
  },
  {
    attack: 'its address part changed',
    status: 403,
    code: 'ip-mismatch',
    isSpent: false,
    body: changedNonce(31),
  },
  ...Object.entries(EQUAL_COUNTERS).map(([name, spelling]) => ({
    attack: `replayed, the counter with: ${name}`,
    ...NONCE_USED,
    isSpent: true,
    body: counterAs(spelling),
  })),
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
export interface TokenTheft extends Refused {
  readonly isSpent: boolean
  readonly make: (token: string, claims: TokenClaims) => string
  readonly apiKey?: 'another site’s' | 'unknown' | 'the site key'
  readonly expectedIp?: string
  readonly idempotencyKey?: string
}

const INVALID_TOKEN = { status: 400, code: 'invalid-token', isSpent: false } as const
const TOKEN_USED = { status: 400, code: 'token-used', isSpent: true } as const
const same = (token: string) => token

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

const keyring = (secret: string) => new Keyring([secret])
const reminted = (secret: string, change: Partial<TokenClaims>) => (_token: string, claims: TokenClaims) =>
  mintToken(keyring(secret), { ...claims, ...change })

/** @param secret the service's own: who knows it can make tokens, but cannot erase redemption records */
export function tokenThefts(secret: string): TokenTheft[] {
  return [
    {
      attack: 'with another site’s key',
      status: 400,
      code: 'site-mismatch',
      isSpent: false,
      make: same,
      apiKey: 'another site’s',
    },
    {
      attack: 'with a key that nobody has',
      status: 401,
      code: 'invalid-credentials',
      isSpent: false,
      make: same,
      apiKey: 'unknown',
    },
    {
      attack: 'with the site key',
      status: 401,
      code: 'invalid-credentials',
      isSpent: false,
      make: same,
      apiKey: 'the site key',
    },
    {
      attack: 'for another address',
      status: 400,
      code: 'ip-mismatch',
      isSpent: false,
      make: same,
      expectedIp: '203.0.113.99',
    },
    {
      attack: 'for an address that is none',
      status: 400,
      code: 'invalid-body',
      isSpent: false,
      make: same,
      expectedIp: '127.1',
    },
    { attack: 'replayed', ...TOKEN_USED, make: same },
    { attack: 'replayed with an idempotency key', ...TOKEN_USED, make: same, idempotencyKey: 'thief' },
    {
      attack: 'replayed for another address',
      status: 400,
      code: 'ip-mismatch',
      isSpent: true,
      make: same,
      expectedIp: '203.0.113.99',
    },
    {
      attack: 'replayed with another site’s key',
      status: 400,
      code: 'site-mismatch',
      isSpent: true,
      make: same,
      apiKey: 'another site’s',
    },
    {
      attack: 'of another master secret',
      ...INVALID_TOKEN,
      make: reminted('another secret, also of more than thirty-two characters', {}),
    },
    {
      attack: 'of a store that lost its memory',
      ...INVALID_TOKEN,
      make: (_, claims) =>
        mintToken(keyring(secret), { ...claims, storeEpoch: (claims.storeEpoch ^ 1) >>> 0 }),
    },
    {
      attack: 'from the future',
      ...INVALID_TOKEN,
      make: (_, claims) =>
        mintToken(keyring(secret), { ...claims, issuedAtMs: claims.issuedAtMs + 3_600_000 }),
    },
    {
      attack: 'of an hour ago',
      status: 400,
      code: 'token-expired',
      isSpent: false,
      make: (_, claims) =>
        mintToken(keyring(secret), { ...claims, issuedAtMs: claims.issuedAtMs - 3_600_000 }),
    },
    {
      attack: 'replayed, signed anew with another time',
      ...TOKEN_USED,
      make: (_, claims) => mintToken(keyring(secret), { ...claims, issuedAtMs: claims.issuedAtMs + 1 }),
    },
    {
      attack: 'replayed, signed anew with another counter',
      ...TOKEN_USED,
      make: (_, claims) => mintToken(keyring(secret), { ...claims, counter: claims.counter + 1 }),
    },
    ...Object.entries(ALTERED).map(([name, make]) => ({ attack: `with ${name}`, ...INVALID_TOKEN, make })),
    ...Object.entries(ALTERED).map(([name, make]) => ({
      attack: `replayed with ${name}`,
      ...INVALID_TOKEN,
      isSpent: true,
      make,
    })),
  ]
}

/** How /siteverify names a refusal of /verify-token; its status is 200. */
export const SITEVERIFY_CODES: Readonly<Record<string, string>> = {
  'invalid-token': 'invalid-input-response',
  'token-used': 'timeout-or-duplicate',
  'token-expired': 'timeout-or-duplicate',
  'site-mismatch': 'sitekey-secret-mismatch',
  'ip-mismatch': 'remoteip-mismatch',
  'invalid-body': 'invalid-remoteip',
  'invalid-credentials': 'invalid-input-secret',
}

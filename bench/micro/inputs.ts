/** Fixed test visitors, and the calls into src/ that need more than their own arguments. */

import { type Address, limitKey, parseAddress } from '../../src/domain/address.ts'
import { admitToLog, LogKind } from '../../src/domain/address-log.ts'
import { Keyring } from '../../src/domain/keyring.ts'
import { mintNonce, NONCE_RANDOM_BITS, type NonceBinding, readNonce } from '../../src/domain/nonce.ts'
import { checkProof } from '../../src/domain/pow.ts'
import { scoreOf } from '../../src/domain/score.ts'
import { compileSite, SITE_DEFAULTS } from '../../src/domain/site.ts'
import { mintToken, readToken, type TokenClaims } from '../../src/domain/token.ts'
import { parseRedemption, parseSolution } from '../../src/http/schemas.ts'
import type { Redemption, Solution } from '../../src/protocol/wire.ts'
import { randomHex, seededRandom } from '../../test/harness/values.ts'

/** Of all cases but those of peers whose inputs take long to make. */
export const INPUTS = 1024
/** All that is judged by a clock is judged at this time, so that runs are alike. */
export const NOW_MS = Date.UTC(2026, 0, 1, 12)
/** Few bits, so that inputs are solved quickly: a check costs the same whatever the bits. */
export const DIFFICULTY = 6
export const TOKEN_LIFETIME_MS = 300_000
export const CHALLENGE_LIFETIME_MS = 120_000
const LIFETIMES = { challengeLifetimeMs: CHALLENGE_LIFETIME_MS, tokenLifetimeMs: TOKEN_LIFETIME_MS }
const IPV6_PREFIX_BITS = 64
export const THRESHOLD = 0.5

export const SITE_KEY = 'site_0123456789ABCDEFabcdef'
export const SITE = compileSite({
  ...SITE_DEFAULTS,
  siteKey: SITE_KEY,
  name: 'bench',
  createdAt: NOW_MS,
  updatedAt: NOW_MS,
})
const STORE_EPOCH = 7
const KEYRING = new Keyring(['a secret for the bench, long enough to be accepted'])

/** The widget tries counters of 16 digits only (src/protocol/proof.ts). */
const FIRST_COUNTER = 1e15

/** One visitor: a challenge, its solution, and the token for it. */
export interface Visit {
  readonly addressText: string
  readonly address: Address
  readonly binding: NonceBinding
  readonly issuedAtMs: number
  readonly randomBits: number
  readonly nonce: string
  readonly counter: number
  readonly solution: Solution
  /** What the browser posts. */
  readonly body: Buffer
  readonly claims: TokenClaims
  readonly token: string
}

let made: readonly Visit[] | undefined

/** The same INPUTS visits in every process. Three of four have IPv4. */
export function visits(): readonly Visit[] {
  if (made === undefined) {
    const random = seededRandom(0x706f7767)
    made = Array.from({ length: INPUTS }, (_, index) => visit(random, index))
  }
  return made
}

function visit(random: () => number, index: number): Visit {
  const addressText = index % 4 === 3 ? v6Text(random) : v4Text(random)
  const address = parseAddress(addressText)!
  const binding = bindingFor(address)
  const issuedAtMs = NOW_MS - 200 - (random() % 5000)
  const randomBits = random() % 2 ** NONCE_RANDOM_BITS
  const nonce = nonceFor(issuedAtMs, randomBits, binding)
  let counter = FIRST_COUNTER + (random() % 2 ** 31)
  while (!checkProof(nonce, counter, DIFFICULTY)) counter++
  const solution: Solution = {
    nonce,
    counter,
    solveTimeMs: 100 + (random() % 100),
    fingerprintHash: randomHex(random, 64),
    environment: {
      webdriver: false,
      chromeAbsent: false,
      swiftShader: random() % 16 === 0,
      noPlugins: random() % 8 === 0,
      notificationDenied: false,
      zeroScreen: false,
      noLanguages: false,
    },
  }
  const claims = claimsOf(nonce, counter, address, (50 + (random() % 51)) / 100)
  const body = Buffer.from(JSON.stringify(solution))
  const token = tokenFor(claims)
  return {
    addressText,
    address,
    binding,
    issuedAtMs,
    randomBits,
    nonce,
    counter,
    solution,
    body,
    claims,
    token,
  }
}

function v4Text(random: () => number): string {
  const bits = random()
  return [203, (bits >>> 16) & 255, (bits >>> 8) & 255, bits & 255].join('.')
}

function v6Text(random: () => number): string {
  const group = () => (random() & 0xffff).toString(16)
  return `2001:db8:${group()}:${group()}::${group()}:${group()}`
}

export function addressKeyOf(address: Address): string {
  return limitKey(address, IPV6_PREFIX_BITS)
}

export function nonceFor(issuedAtMs: number, randomBits: number, binding: NonceBinding): string {
  return mintNonce(KEYRING, { issuedAtMs, difficulty: DIFFICULTY }, binding, randomBits)
}

export function bindingFor(address: Address): NonceBinding {
  return { siteKey: SITE_KEY, storeEpoch: STORE_EPOCH, lifetimes: LIFETIMES, address }
}

/** undefined unless it is genuine. */
export function termsOf(nonce: string, binding: NonceBinding) {
  const reading = readNonce(KEYRING, nonce, binding, NOW_MS)
  return reading.status === 'genuine' ? reading : undefined
}

/** The score of a first verification, 0 to 1. */
export function scoreFor(solution: Solution, issuedAtMs: number, difficulty: number): number {
  return scoreOf({
    environment: solution.environment,
    solveTimeMs: solution.solveTimeMs,
    elapsedMs: NOW_MS - issuedAtMs,
    difficulty,
    fingerprintAddresses: 1,
    addressFailures: 0,
  }).score
}

export function claimsOf(nonce: string, counter: number, address: Address, score: number): TokenClaims {
  const when = { issuedAtMs: NOW_MS, lifetimes: LIFETIMES }
  return { ...when, nonce, counter, siteTag: SITE.tag, address, score, storeEpoch: STORE_EPOCH }
}

export function tokenFor(claims: TokenClaims): string {
  return mintToken(KEYRING, claims)
}

/** undefined unless it is genuine. */
export function claimsIn(token: string): TokenClaims | undefined {
  const reading = readToken(KEYRING, token)
  return reading.status === 'genuine' ? reading.claims : undefined
}

/** What a customer's backend posts. */
export function redemptionBodies(): Buffer[] {
  return visits().map(({ token, addressText }) =>
    Buffer.from(JSON.stringify({ token, expectedIp: addressText })),
  )
}

/** undefined if it is refused. */
export function solutionIn(body: Buffer): Solution | undefined {
  const parsed = parseSolution(body, 'application/json')
  return parsed.ok ? parsed.body : undefined
}

/** undefined if it is refused. */
export function redemptionIn(body: Buffer): Redemption | undefined {
  const parsed = parseRedemption(body, 'application/json')
  return parsed.ok ? parsed.body : undefined
}

const LOG_REQUEST = { siteTag: 1, addressLimit: 30, siteLimit: 20 }

/** Charges one verification to an address's log at NOW_MS. */
export function chargeLog(record: Buffer): ReturnType<typeof admitToLog> {
  return admitToLog(record, NOW_MS, LogKind.verification, LOG_REQUEST)
}

/** Logs of addresses that had two verifications in the last minute, on two sites. */
export function logs(): Buffer[] {
  const random = seededRandom(11)
  return Array.from({ length: INPUTS }, () => {
    const first = verified(undefined, NOW_MS - 55_000 + (random() % 500), 1)
    return verified(first, NOW_MS - 27_500 + (random() % 500), 2)
  })
}

function verified(record: Buffer | undefined, atMs: number, siteTag: number): Buffer {
  const decision = admitToLog(record, atMs, LogKind.verification, { ...LOG_REQUEST, siteTag })
  if (decision.status === 'limited') throw new Error('the log refuses what fits')
  return Buffer.from(decision.record)
}

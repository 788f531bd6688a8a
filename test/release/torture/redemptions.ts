/** Tokens as the service makes them, and many redemptions of the same token at once, for cases 3 to 7. */

import { parseAddress } from '../../../src/addresses/address.ts'
import { Keyring } from '../../../src/domain/keyring.ts'
import { mintNonce } from '../../../src/domain/nonce.ts'
import { mintToken, readToken, type TokenClaims } from '../../../src/domain/token.ts'
import { Client } from '../../harness/client.ts'
import type { Random } from '../../harness/random.ts'
import { TEST_SECRET, type TestSite } from '../../harness/service.ts'
import type { Call, History } from './history.ts'
import type { Run } from './run.ts'
import { JSON_TYPE, type Pool, requestText } from './wire.ts'

export const EASY = { base: 16, min: 16, max: 16 }
const VISITOR = '127.0.0.1'

const keyring = new Keyring([TEST_SECRET])

type MintedClaims = Pick<TokenClaims, 'siteTag' | 'storeEpoch' | 'lifetimes'>

/** Makes tokens as the service does, for a site whose redemption records are kept under one epoch of the store. */
export class TokenMint {
  readonly #claims: MintedClaims
  readonly #random: Random

  private constructor(claims: MintedClaims, random: Random) {
    this.#claims = claims
    this.#random = random
  }

  /** Reads from one whole flow what the other tokens must contain. */
  static async open(url: string, site: TestSite, random: Random): Promise<TokenMint> {
    const reading = readToken(keyring, await new Client(url).token(site.siteKey))
    if (reading.status !== 'genuine') throw new Error('the service signs with another secret')
    return new TokenMint(reading.claims, random)
  }

  /** The same mint under another epoch of the store. */
  under(storeEpoch: number): TokenMint {
    return new TokenMint({ ...this.#claims, storeEpoch }, this.#random)
  }

  /** A challenge of a site that is FREE, issued now: any counter solves it. */
  nonce(siteKey: string, from: string): string {
    const { lifetimes, storeEpoch } = this.#claims
    const binding = { siteKey, storeEpoch, lifetimes, address: parseAddress(from)! }
    const terms = { issuedAtMs: Date.now(), difficulty: 0 }
    return mintNonce(keyring, terms, binding, this.#random.below(2 ** 14))
  }

  mint(): string {
    const { siteTag, storeEpoch, lifetimes } = this.#claims
    const issuedAtMs = Date.now()
    const high = Math.floor((issuedAtMs - Date.UTC(2024, 0, 1)) / 512)
    return mintToken(keyring, {
      issuedAtMs,
      lifetimes,
      nonce: high.toString(16).padStart(8, '0') + this.#random.hex(24),
      counter: this.#random.below(2 ** 31),
      siteTag,
      address: parseAddress(VISITOR)!,
      score: 1,
      storeEpoch,
    })
  }
}

/** @param idempotencyKey the same key again returns the first answer again */
export function redemptionRequest(apiKey: string, token: string, idempotencyKey?: string): string {
  const headers = [`Authorization: Bearer ${apiKey}`, JSON_TYPE]
  return requestText('POST /verify-token', headers, JSON.stringify({ token, idempotencyKey }))
}

/** Number of redemptions of one token, all at once. */
export const RACERS = 64

export interface Race {
  readonly pool: Pool
  readonly site: TestSite
  readonly history: History
  /** Every redemption has an idempotency key, by which its answer can be requested again. */
  readonly hasKeys?: boolean
  /** Whether this attempt at a token hangs up before the answer; if undefined, none does. */
  readonly hangsUp?: (subject: number, number: number) => boolean
}

/** @param isHeard whether the answer is awaited in any case */
export async function attempt(
  { pool, site, history, hasKeys, hangsUp }: Race,
  subject: number,
  token: string,
  number: number,
  isHeard = false,
): Promise<Call> {
  // A repeated attempt at the same token has the same key.
  const request = redemptionRequest(site.apiKey, token, hasKeys ? `torture-${subject}-${number}` : undefined)
  const startedMs = performance.now()
  const isAbandoned = !isHeard && hangsUp?.(subject, number) === true
  const ending = await (isAbandoned ? pool.abandon(request) : pool.call(request))
  return history.record(subject, number, startedMs, ending)
}

/** Sends all redemptions at once, on as many connections. Resolves when each has ended. */
export function raceFor(race: Race, subject: number, token: string): Promise<Call[]> {
  return Promise.all(Array.from({ length: RACERS }, (_, number) => attempt(race, subject, token, number)))
}

/** Whether the outcome of a call is known. */
export const isKnown = ({ outcome }: Call) => outcome === 'ok' || outcome === 'refused'

/** No token is redeemed twice, and each refusal has one of these codes. */
export function judgeRedemptions(run: Run, history: History, codes: readonly string[]): void {
  run.figure('outcomes', JSON.stringify(history.counts).replaceAll('"', ''))
  run.none('tokens redeemed twice', history.doubleSuccesses())
  const odd = history.calls.filter(({ outcome, code }) => outcome === 'refused' && !codes.includes(code))
  run.none('refused otherwise', odd)
}

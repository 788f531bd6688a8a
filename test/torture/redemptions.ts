/** Many redemptions of the same tokens at once, for cases 3 to 6. */

import { parseAddress } from '../../src/domain/address.ts'
import { Keyring } from '../../src/domain/keyring.ts'
import { mintNonce } from '../../src/domain/nonce.ts'
import { mintToken, readToken, type TokenClaims } from '../../src/domain/token.ts'
import { Client } from '../harness/client.ts'
import { TEST_SECRET, type TestSite } from '../harness/service.ts'
import type { Call, History } from './history.ts'
import type { Random } from './random.ts'
import type { Ending, Pool } from './wire.ts'

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

  /** Nonces of the site's visitors are issued under the same epoch, unless the store is a Cluster. */
  get storeEpoch(): number {
    return this.#claims.storeEpoch
  }

  /** The same mint under another epoch of the store. */
  under(storeEpoch: number): TokenMint {
    return new TokenMint({ ...this.#claims, storeEpoch }, this.#random)
  }

  /** A challenge of the site that any counter solves. */
  nonce(siteKey: string): string {
    const { lifetimes, storeEpoch } = this.#claims
    const address = parseAddress(VISITOR)!
    const terms = { issuedAtMs: Date.now(), difficulty: 0 }
    return mintNonce(keyring, terms, { siteKey, storeEpoch, lifetimes, address }, this.#random.below(2 ** 14))
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
  const body = JSON.stringify({ token, ...(idempotencyKey === undefined ? {} : { idempotencyKey }) })
  const lines = [
    'POST /verify-token HTTP/1.1',
    'Host: powgate',
    `Authorization: Bearer ${apiKey}`,
    'Content-Type: application/json',
    `Content-Length: ${body.length}`,
  ]
  return `${lines.join('\r\n')}\r\n\r\n${body}`
}

export interface Race {
  readonly pool: Pool
  readonly site: TestSite
  readonly history: History
  /** Number of redemptions of one token, all at once. */
  readonly racers: number
  /** Whether every redemption has an idempotency key, by which its answer can be requested again. */
  readonly hasKeys: boolean
  /** Whether this attempt at a token hangs up before the answer; if undefined, none does. */
  readonly hangsUp?: (subject: number, number: number) => boolean
}

/** A repeated attempt at the same token has the same key. */
const keyOf = (subject: number, attempt: number) => `torture-${subject}-${attempt}`

/** @param isHeard whether the answer is awaited in any case */
export async function attempt(
  race: Race,
  subject: number,
  token: string,
  number: number,
  isHeard = false,
): Promise<Call> {
  const key = race.hasKeys ? keyOf(subject, number) : undefined
  const startedMs = performance.now()
  const request = redemptionRequest(race.site.apiKey, token, key)
  const hangsUp = !isHeard && race.hangsUp?.(subject, number) === true
  const ending: Ending = await (hangsUp ? race.pool.abandon(request) : race.pool.call(request))
  return race.history.record(subject, number, startedMs, ending)
}

/** Sends all redemptions at once, on as many connections. Resolves when each has ended. */
export function raceFor(race: Race, subject: number, token: string): Promise<Call[]> {
  return Promise.all(
    Array.from({ length: race.racers }, (_, number) => attempt(race, subject, token, number)),
  )
}

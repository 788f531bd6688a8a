/** Tokens as the service makes them, and redemptions of them, for cases 1, 6 and 7. */

import { parseAddress } from '../../../src/addresses/address.ts'
import { Keyring } from '../../../src/domain/keyring.ts'
import { mintNonce } from '../../../src/domain/nonce.ts'
import { mintToken, readToken, type TokenClaims } from '../../../src/domain/token.ts'
import { Client } from '../../harness/client.ts'
import type { Random } from '../../harness/random.ts'
import { TEST_SECRET, type TestSite } from '../../harness/service.ts'
import type { Call, History } from './history.ts'
import type { Run } from './run.ts'

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
    const issuedAtMs = Date.now()
    const high = Math.floor((issuedAtMs - Date.UTC(2024, 0, 1)) / 512)
    return mintToken(keyring, {
      ...this.#claims,
      issuedAtMs,
      nonce: high.toString(16).padStart(8, '0') + this.#random.hex(24),
      counter: this.#random.below(2 ** 31),
      address: parseAddress(VISITOR)!,
      score: 1,
    })
  }
}

/** So many addresses of backends, in turn: each has connections of its own, and with these every worker gets some. */
const BACKENDS = 12

/** Redeems the token of a subject, and records what became of it. */
export async function redeem(
  history: History,
  client: Client,
  apiKey: string,
  subject: number,
  token: string,
): Promise<Call> {
  const from = `127.60.0.${1 + (history.calls.length % BACKENDS)}`
  const startedMs = performance.now()
  const ending = await client.verifyToken(apiKey, { token }, { from }).catch((error: Error) => error)
  return history.record(subject, startedMs, ending)
}

/** No token is redeemed twice, and each refusal has one of these codes. */
export function judgeRedemptions(run: Run, history: History, codes: readonly string[]): void {
  run.figure('outcomes', JSON.stringify(history.counts).replaceAll('"', ''))
  run.none('tokens redeemed twice', history.doubleSuccesses())
  const odd = history.calls.filter(({ outcome, code }) => outcome === 'refused' && !codes.includes(code))
  run.none('refused otherwise', odd)
}

/** Tokens as the service makes them, and redemptions of them, for cases 1, 6 and 7. */

import { parseAddress } from '../../../src/addresses/address.ts'
import { Keyring } from '../../../src/domain/keyring.ts'
import { mintNonce, NONCE_RANDOM_BITS } from '../../../src/domain/nonce.ts'
import { mintToken, type TokenClaims } from '../../../src/domain/token.ts'
import { NONCE_LENGTH, NONCE_TIME_ZERO_MS } from '../../../src/protocol/proof.ts'
import type { Random } from '../../harness/random.ts'
import { TEST_SECRET } from '../../harness/service.ts'
import type { History } from './history.ts'
import type { Run } from './run.ts'

const keyring = new Keyring([TEST_SECRET])

/** What all tokens of one site have in common while its store keeps its epoch. */
export type MintedClaims = Pick<TokenClaims, 'siteTag' | 'storeEpoch' | 'lifetimes'>

/** A challenge of a site that is FREE, issued now as the service does: any counter solves it. */
export function nonceOf(claims: MintedClaims, random: Random, siteKey: string, from: string): string {
  const { lifetimes, storeEpoch } = claims
  const binding = { siteKey, storeEpoch, lifetimes, address: parseAddress(from)! }
  const randomBits = random.below(2 ** NONCE_RANDOM_BITS)
  return mintNonce(keyring, { issuedAtMs: Date.now(), difficulty: 0 }, binding, randomBits)
}

export function tokenOf(claims: MintedClaims, random: Random): string {
  const issuedAtMs = Date.now()
  // A nonce starts with its time, 41 bits of which these are the first 32: the record of its redemption ends by it.
  const time = Math.floor((issuedAtMs - NONCE_TIME_ZERO_MS) / 512)
  return mintToken(keyring, {
    ...claims,
    issuedAtMs,
    nonce: time.toString(16).padStart(8, '0') + random.hex(NONCE_LENGTH - 8),
    counter: random.below(2 ** 31),
    address: parseAddress('127.0.0.1')!, // any: these redemptions name no visitor's address
    score: 1,
  })
}

/** No token is redeemed twice, and each refusal has one of these codes. */
export function judgeRedemptions(run: Run, history: History, codes: readonly string[]): void {
  run.figure('outcomes', JSON.stringify(history.counts).replaceAll('"', ''))
  run.none('tokens redeemed twice', history.doubleSuccesses())
  const odd = history.calls.filter(({ outcome, code }) => outcome === 'refused' && !codes.includes(code))
  run.none('refused otherwise', odd)
}

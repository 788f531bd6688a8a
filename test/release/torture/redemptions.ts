/** Tokens as the service makes them, and redemptions of them, for cases 1, 6 and 7. */

import { parseAddress } from '../../../src/addresses/address.ts'
import { Keyring } from '../../../src/domain/keyring.ts'
import { mintNonce } from '../../../src/domain/nonce.ts'
import { mintToken, type TokenClaims } from '../../../src/domain/token.ts'
import type { Random } from '../../harness/random.ts'
import { TEST_SECRET } from '../../harness/service.ts'
import type { History } from './history.ts'
import type { Run } from './run.ts'

const VISITOR = '127.0.0.1'

const keyring = new Keyring([TEST_SECRET])

/** What tokens of a site contain whose redemption records are kept under one epoch of the store. */
export type MintedClaims = Pick<TokenClaims, 'siteTag' | 'storeEpoch' | 'lifetimes'>

/** A challenge of a site that is FREE, issued now as the service does: any counter solves it. */
export function nonceOf(claims: MintedClaims, random: Random, siteKey: string, from: string): string {
  const { lifetimes, storeEpoch } = claims
  const binding = { siteKey, storeEpoch, lifetimes, address: parseAddress(from)! }
  return mintNonce(keyring, { issuedAtMs: Date.now(), difficulty: 0 }, binding, random.below(2 ** 14))
}

export function tokenOf(claims: MintedClaims, random: Random): string {
  const issuedAtMs = Date.now()
  const high = Math.floor((issuedAtMs - Date.UTC(2024, 0, 1)) / 512) // the first 32 of the 41 bits of a nonce's time
  return mintToken(keyring, {
    ...claims,
    issuedAtMs,
    nonce: high.toString(16).padStart(8, '0') + random.hex(24),
    counter: random.below(2 ** 31),
    address: parseAddress(VISITOR)!,
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

/** Finds out from outside which client address the service saw: nonces are bound to an address. */

import assert from 'node:assert/strict'
import { parseAddress } from '../../src/addresses/address.ts'
import { readNonce } from '../../src/domain/nonce.ts'
import type { Solution } from '../../src/protocol/wire.ts'
import { claimsOf, keyring } from '../contract/support.ts'
import { Client, solutionOf, solve } from '../harness/client.ts'
import { freshAddress } from '../harness/http.ts'
import { requestText } from '../harness/raw-http.ts'
import { ALWAYS_EASY, lifetimesOf, type TestSite } from '../harness/service.ts'

/** A request for a challenge, in bytes. */
export const challengeRequest = (siteKey: string, lines: readonly string[] = []): string =>
  requestText('GET /challenge', [`X-Site-Key: ${siteKey}`, ...lines])

/** For a challenge of a site with `ALWAYS_EASY`. */
export function solutionFor(nonce: string): Solution {
  return solutionOf(nonce, solve(nonce, ALWAYS_EASY.base))
}

/**
 * @param url where the site can be called by clients at any address
 * @returns tells, without a request, whether a challenge was given to an address
 */
export async function nonceObserver(url: string, { siteKey }: TestSite) {
  const token = await new Client(url).token(siteKey, { from: freshAddress() })
  const { storeEpoch } = claimsOf(token)
  return (nonce: string, address: string): boolean => {
    const binding = { siteKey, storeEpoch, lifetimes: lifetimesOf(), address: parseAddress(address)! }
    const { status } = readNonce(keyring, nonce, binding, Number.POSITIVE_INFINITY)
    assert.notEqual(status, 'forged', `${nonce} is not of this site`)
    return status === 'genuine'
  }
}

/** Each test has a proxy of its own, so that none counts on the limit of another. */
export const PROXIES = '127.66.0.0/16'

let lastProxy = 0

export function freshProxy(): string {
  lastProxy++
  return `127.66.${lastProxy >> 8}.${lastProxy & 0xff}`
}

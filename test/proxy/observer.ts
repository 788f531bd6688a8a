/** What tests of proxies send, and from where; and which client address the service saw, told by nonces, which are bound to one. */

import assert from 'node:assert/strict'
import { parseAddress } from '../../src/addresses/address.ts'
import { readNonce } from '../../src/domain/nonce.ts'
import { claimsOf, keyring } from '../contract/support.ts'
import { Client } from '../harness/client.ts'
import { freshAddress } from '../harness/http.ts'
import { requestText } from '../harness/raw-http.ts'
import { lifetimesOf, type TestSite } from '../harness/service.ts'

export const challengeRequest = (siteKey: string, lines: readonly string[] = []): string =>
  requestText('GET /challenge', [`X-Site-Key: ${siteKey}`, ...lines])

/** @param url where clients at any address can call the site @returns tells whether a challenge was given to an address */
export async function nonceObserver(url: string, { siteKey }: TestSite) {
  // Nonces are made with the store's epoch, which a token has too.
  const token = await new Client(url).token(siteKey, { from: freshAddress() })
  const { storeEpoch } = claimsOf(token)
  const latestMs = Number.POSITIVE_INFINITY // so that a nonce of another address never reads as forged
  return (nonce: string, address: string): boolean => {
    const binding = { siteKey, storeEpoch, lifetimes: lifetimesOf(), address: parseAddress(address)! }
    const { status } = readNonce(keyring, nonce, binding, latestMs)
    assert.notEqual(status, 'forged', `${nonce} is not of this site`)
    return status === 'genuine'
  }
}

const PROXIES_PREFIX = '127.66.'
export const PROXIES = `${PROXIES_PREFIX}0.0/16`
export const isProxy = (address: string): boolean => address.startsWith(PROXIES_PREFIX)

let lastProxy = 0

/** A proxy for one test, since requests without another client count on the proxy's own limits. */
export function freshProxy(): string {
  lastProxy++
  return `${PROXIES_PREFIX}${lastProxy >> 8}.${lastProxy & 0xff}`
}

/** Whose request the service thinks an answer is for, seen from outside: nonces are bound to an address. */

import assert from 'node:assert/strict'
import { parseAddress } from '../../src/domain/address.ts'
import { Keyring } from '../../src/domain/keyring.ts'
import { readNonce } from '../../src/domain/nonce.ts'
import type { Solution } from '../../src/protocol/wire.ts'
import { createSite, type SiteOptions } from '../../src/sites/sites.ts'
import { claimsOf, freshFingerprint } from '../contract/support.ts'
import { Client, HONEST_ENVIRONMENT, solve } from '../harness/client.ts'
import { eventually } from '../harness/eventually.ts'
import { freshAddress } from '../harness/http.ts'
import { lifetimesOf } from '../harness/lifetimes.ts'
import { TEST_SECRET, type TestService, type TestSite } from '../harness/service.ts'

const DIFFICULTY = 16

/** Solved so quickly that no test waits, and the same for every address. */
const SITE_OPTIONS: SiteOptions = { difficulty: { base: DIFFICULTY, min: DIFFICULTY, max: DIFFICULTY } }

/** A request for a challenge, in bytes. */
export function challengeRequest(siteKey: string, lines: readonly string[] = []): string {
  return ['GET /challenge HTTP/1.1', 'Host: powgate', `X-Site-Key: ${siteKey}`, ...lines, '', ''].join('\r\n')
}

export function solutionFor(nonce: string): Solution {
  const counter = solve(nonce, DIFFICULTY)
  return { nonce, counter, fingerprintHash: freshFingerprint(), environment: HONEST_ENVIRONMENT }
}

const keyring = new Keyring([TEST_SECRET])

/** Checks, without a request, whom a challenge was given to. */
export class NonceObserver {
  readonly #siteKey: string
  readonly #storeEpoch: number

  private constructor(siteKey: string, storeEpoch: number) {
    this.#siteKey = siteKey
    this.#storeEpoch = storeEpoch
  }

  /** @param url where the site can be called by clients at any address */
  static async create(url: string, site: TestSite): Promise<NonceObserver> {
    const token = await new Client(url).token(site.siteKey, { from: freshAddress() })
    return new NonceObserver(site.siteKey, claimsOf(token).storeEpoch)
  }

  isBoundTo(nonce: string, address: string): boolean {
    const binding = {
      siteKey: this.#siteKey,
      storeEpoch: this.#storeEpoch,
      lifetimes: lifetimesOf(),
      address: parseAddress(address)!,
    }
    const { status } = readNonce(keyring, nonce, binding, Number.POSITIVE_INFINITY)
    assert.notEqual(status, 'forged', `${nonce} is not of this site`)
    return status === 'genuine'
  }
}

/** Makes sites whose challenges are quick to solve, with one store client for all of them. */
export class SiteMaker {
  readonly #store: Awaited<ReturnType<TestService['openSites']>>

  private constructor(store: Awaited<ReturnType<TestService['openSites']>>) {
    this.#store = store
  }

  static async open(service: TestService): Promise<SiteMaker> {
    return new SiteMaker(await service.openSites())
  }

  async create(): Promise<TestSite> {
    const { site, apiKey } = await createSite(this.#store, { name: 'test', ...SITE_OPTIONS })
    return { siteKey: site.siteKey, apiKey }
  }

  close(): Promise<void> {
    return this.#store.close()
  }
}

/** Resolves when no worker answers 503 any more, as one does that has not reached the store yet. */
export async function untilReady(url: string, { siteKey }: TestSite): Promise<void> {
  const client = new Client(url)
  await eventually(60_000, 'both workers have reached the store', async () => {
    const answers = await Promise.all(
      Array.from({ length: 20 }, () =>
        client.challenge(siteKey, { from: freshAddress() }).catch(() => undefined),
      ),
    )
    return answers.every(answer => answer?.status === 200)
  })
}

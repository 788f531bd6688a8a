/** A small load on several sites with known counts of every outcome. */

import assert from 'node:assert/strict'
import type { Solution } from '../../src/protocol/wire.ts'
import { freshFingerprint } from '../contract/support.ts'
import { Client, HONEST_ENVIRONMENT } from '../harness/client.ts'
import { type Answer, call, freshAddress } from '../harness/http.ts'
import type { TestService, TestSite } from '../harness/service.ts'

/** At a limit that is reached with few requests. */
export const LOAD_ENV = { POWGATE_LIMIT_CHALLENGE_ADDRESS_SITE: '5' }

const UNKNOWN_SITE_KEY = 'site_0000000000000000000000'
const EASY = { difficulty: { base: 16, min: 16, max: 28 } }

/** What a site, or all of them, must have been asked for. */
export interface Expected {
  challenges: number
  passed: number
  failed: number
  redeemed: number
  readonly refusals: Record<string, number>
  readonly reasons: Record<string, number>
}

function nothing(): Expected {
  return { challenges: 0, passed: 0, failed: 0, redeemed: 0, refusals: {}, reasons: {} }
}

export class SiteLoad {
  readonly site: TestSite
  readonly name: string
  readonly expected = nothing()
  readonly #client: Client

  private constructor(service: TestService, name: string, site: TestSite) {
    this.site = site
    this.name = name
    this.#client = new Client(service.url)
  }

  static async create(service: TestService, name: string): Promise<SiteLoad> {
    return new SiteLoad(service, name, await service.createSite({ name, ...EASY }))
  }

  async passes(count: number): Promise<void> {
    for (let index = 0; index < count; index++) await this.#passOne()
  }

  async #passOne(): Promise<string> {
    const from = { from: freshAddress() }
    const solution = await this.#solved(from)
    const answer = must(await this.#client.verify(this.site.siteKey, solution, from), 200)
    assert.equal(answer.json.passed, true)
    this.expected.passed++
    return answer.json.token
  }

  /** Each visitor has a fingerprint of their own: one from many addresses would cost score. */
  async #solved(from: { from: string }, more: Partial<Solution> = {}): Promise<Solution> {
    this.expected.challenges++
    return this.#client.solved(this.site.siteKey, from, { fingerprintHash: freshFingerprint(), ...more })
  }

  /** Redeems each token twice, which the second time is refused. */
  async redemptions(count: number): Promise<void> {
    for (let index = 0; index < count; index++) {
      const token = await this.#passOne()
      must(await this.#client.verifyToken(this.site.apiKey, { token }, { from: freshAddress() }), 200)
      must(await this.#client.verifyToken(this.site.apiKey, { token }, { from: freshAddress() }), 400)
      this.expected.redeemed++
      add(this.expected.refusals, 'token-used')
    }
  }

  /** Verifications that fail: a browser that says it is driven, and one that draws in software. */
  async failures(count: number): Promise<void> {
    for (let index = 0; index < count; index++) {
      const from = { from: freshAddress() }
      const environment = { ...HONEST_ENVIRONMENT, webdriver: true, swiftShader: index % 2 === 0 }
      const solution = await this.#solved(from, { environment })
      const answer = must(await this.#client.verify(this.site.siteKey, solution, from), 200)
      assert.equal(answer.json.passed, false)
      this.expected.failed++
      add(this.expected.reasons, 'webdriver')
      if (environment.swiftShader) add(this.expected.reasons, 'swiftShader')
    }
  }

  async refusals(count: number): Promise<void> {
    for (let index = 0; index < count; index++) {
      const from = { from: freshAddress() }
      const solution = await this.#solved(from)
      must(await this.#client.verify(this.site.siteKey, solution, { from: freshAddress() }), 403)
      add(this.expected.refusals, 'nonce-other-address')
      must(await this.#client.verify(this.site.siteKey, '{', from), 400)
      add(this.expected.refusals, 'body-not-json')
    }
  }

  /** More than LOAD_ENV allows. */
  async limited(count: number): Promise<void> {
    const from = { from: freshAddress() }
    for (let index = 0; index < Number(LOAD_ENV.POWGATE_LIMIT_CHALLENGE_ADDRESS_SITE); index++) {
      must(await this.#client.challenge(this.site.siteKey, from), 200)
      this.expected.challenges++
    }
    for (let index = 0; index < count; index++) {
      must(await this.#client.challenge(this.site.siteKey, from), 429)
      add(this.expected.refusals, 'rate-limited')
    }
  }
}

/** What belongs to no site. */
export async function strayRequests(service: TestService, count: number): Promise<Expected> {
  const expected = nothing()
  for (let index = 0; index < count; index++) {
    must(await new Client(service.url).challenge(UNKNOWN_SITE_KEY, { from: freshAddress() }), 403)
    add(expected.refusals, 'site-unknown')
    must(await call(`${service.url}/nowhere`, { from: freshAddress() }), 404)
    add(expected.refusals, 'not-found')
  }
  return expected
}

export function sumOf(all: readonly Expected[]): Expected {
  const sum = nothing()
  for (const { challenges, passed, failed, redeemed, refusals, reasons } of all) {
    sum.challenges += challenges
    sum.passed += passed
    sum.failed += failed
    sum.redeemed += redeemed
    for (const [reason, count] of Object.entries(refusals)) add(sum.refusals, reason, count)
    for (const [reason, count] of Object.entries(reasons)) add(sum.reasons, reason, count)
  }
  return sum
}

function add(counts: Record<string, number>, key: string, count = 1): void {
  counts[key] = (counts[key] ?? 0) + count
}

function must(answer: Answer, status: number): Answer {
  assert.equal(answer.status, status, answer.text)
  return answer
}

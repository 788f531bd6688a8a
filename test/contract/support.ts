/**
 * Shared by the tests of the contract (docs/reference/contract.md): one service for each store, sites with low difficulty, and visitors.
 * In titles, § is a section of that page; "decided" is what the contract leaves open, and powgate has chosen.
 */

import assert from 'node:assert/strict'
import { hash, randomInt } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import { parseAddress } from '../../src/addresses/address.ts'
import { loadConfig } from '../../src/config/config.ts'
import { AddressTags } from '../../src/domain/address-tags.ts'
import { Keyring } from '../../src/domain/keyring.ts'
import { mintNonce, NONCE_RANDOM_BITS } from '../../src/domain/nonce.ts'
import { readToken, type TokenClaims } from '../../src/domain/token.ts'
import type { Solution } from '../../src/protocol/wire.ts'
import { type SiteOptions, updateSite } from '../../src/sites/sites.ts'
import { createStore } from '../../src/store/open.ts'
import type { SiteStore } from '../../src/store/store.ts'
import { Client, solutionOf, solve } from '../harness/client.ts'
import { eventually, PATIENCE_MS } from '../harness/eventually.ts'
import { type Answer, freshAddress } from '../harness/http.ts'
import { BEHIND, FrontProxy, type ProxyKind } from '../harness/proxies.ts'
import {
  ALWAYS_EASY,
  CONNECTIONS,
  EASY,
  lifetimesOf,
  STORE_KINDS,
  type StoreKind,
  TEST_SECRET,
  TestService,
  type TestSite,
} from '../harness/service.ts'
import { assertPassed, assertRedeemed } from './answers.ts'

export const keyring = new Keyring([TEST_SECRET])

export type Section = (subject: Subject) => void

export type Sections = Readonly<Record<string, Section>>

type RedisServers = { readonly url: string; stop(): Promise<void> }

interface HostOptions {
  /** The store, which the service starts itself; or servers of Redis that it uses, by a name. */
  readonly store: StoreKind | readonly [name: string, start: () => Promise<RedisServers>]
  /** The proxy in front of the service, which passes on the client's address. */
  readonly front?: ProxyKind
  readonly env?: Record<string, string>
  readonly sections: Sections
  /** Runs beside the other sections, because it takes long and only waits. */
  readonly waiting?: Section
}

export function onEachStore(sections: Sections, options: Omit<HostOptions, 'store' | 'sections'> = {}): void {
  onHosts(STORE_KINDS.map(store => ({ store, sections, ...options })))
}

/** The hosts go side by side. Starting a service costs more than most sections, so those of a host go one after the other on one. */
export function onHosts(all: readonly HostOptions[]): void {
  describe('contract', { concurrency: true }, () => all.forEach(testHost))
}

function testHost({ store, front, env, sections, waiting }: HostOptions): void {
  const [name, startRedis] = typeof store === 'string' ? [`store ${store}`] : store
  describe(front === undefined ? name : `${name} behind ${front}`, { concurrency: true }, () => {
    let redis: RedisServers | undefined
    let service: TestService | undefined
    let proxy: FrontProxy | undefined
    before(async () => {
      redis = await startRedis?.()
      const more = { ...(front && BEHIND[front]), ...(redis && { REDIS_URL: redis.url }), ...env }
      service = await TestService.start(typeof store === 'string' ? store : 'shared', more)
      if (front !== undefined) proxy = await FrontProxy.start(front, service)
    })
    after(async () => {
      for (const part of [proxy, service, redis]) await part?.stop()
    })
    const run = (section: Section) => {
      const subject = new Subject(front)
      before(() => subject.prepare(service!, proxy?.url))
      section(subject)
    }
    describe('sections', { concurrency: false }, () => {
      for (const [title, section] of Object.entries(sections)) describe(title, () => run(section))
    })
    if (waiting !== undefined) describe('waiting', { concurrency: true }, () => run(waiting))
  })
}

/** The service of a section, once `prepare` has set it. */
export class Subject {
  readonly front: ProxyKind | undefined
  service!: TestService
  /** The address of the proxy in front of the service, or of the service itself. */
  url!: string
  client!: Client
  /** The site of tests that need none of their own, and that other tests' requests do not disturb. */
  site!: TestSite
  #storeEpoch: Promise<number> | undefined

  constructor(front?: ProxyKind) {
    this.front = front
  }

  async prepare(service: TestService, url = service.url): Promise<void> {
    this.service = service
    this.url = url
    this.client = new Client(url)
    this.site = await this.createSite({ difficulty: ALWAYS_EASY })
    // A worker that has not reached the store yet answers 503.
    await untilAll('both workers have reached the store', 200, () => this.visitor().challenge())
  }

  createSite(options: SiteOptions = {}): Promise<TestSite> {
    return this.service.createSite({ difficulty: EASY, ...options })
  }

  /** Somebody at an address that no earlier request came from. */
  visitor(site = this.site, from = freshAddress()): Visitor {
    return new Visitor(this, site, from)
  }

  /** A visitor of a new site with these settings; `visitor` is one of the site that all tests share. */
  async visitorOf(options: SiteOptions = {}): Promise<Visitor> {
    return this.visitor(await this.createSite(options))
  }

  async withSites<Result>(use: (store: SiteStore) => Promise<Result>): Promise<Result> {
    const store = await this.service.openSites()
    return use(store).finally(() => store.close())
  }

  changeSite(siteKey: string, settings: Parameters<typeof updateSite>[2]): Promise<unknown> {
    return this.withSites(store => updateSite(store, siteKey, settings))
  }

  redeem(body: unknown, apiKey = this.site.apiKey, from = freshAddress()): Promise<Answer> {
    return this.client.verifyToken(apiKey, body, { from })
  }

  /** The epoch of the store that keeps this address's used nonces. Each shard of a Cluster has its own; elsewhere a token has it. */
  async epochFor(siteKey: string, from: string): Promise<number> {
    const config = loadConfig(this.service.env)
    const ring = new Keyring(config.secrets) // the service may sign with another secret than TEST_SECRET
    if (config.redis?.kind === 'cluster') {
      const store = createStore(config, { deadlineMs: 5000 })
      try {
        await store.open()
        const tags = new AddressTags(ring.signing)
        const addressKey = tags.keyOf(parseAddress(from)!, config.ipv6PrefixBits)
        const mayFailOpen = false
        return store.requests.nonceEpoch(addressKey, siteKey, mayFailOpen)!
      } finally {
        await store.close()
      }
    }
    this.#storeEpoch ??= this.visitor()
      .token()
      .then(token => claimsOf(token, ring).storeEpoch)
    return this.#storeEpoch
  }
}

/** One visitor of one site, and the backend of that site. */
export class Visitor {
  readonly site: TestSite
  readonly from: string
  readonly #subject: Subject

  constructor(subject: Subject, site: TestSite, from: string) {
    this.#subject = subject
    this.site = site
    this.from = from
  }

  at(site: TestSite): Visitor {
    return new Visitor(this.#subject, site, this.from)
  }

  challenge(headers: Record<string, string> = {}): Promise<Answer> {
    return this.#subject.client.challenge(this.site.siteKey, { from: this.from, headers })
  }

  solved(more: Partial<Solution> = {}): Promise<Solution> {
    return this.#subject.client.solved(this.site.siteKey, { from: this.from }, more)
  }

  /** A solution for a challenge that was issued `ageMs` ago. */
  async agedSolution(ageMs: number): Promise<Solution> {
    const { siteKey } = this.site
    const difficulty = EASY.base
    const storeEpoch = await this.#subject.epochFor(siteKey, this.from)
    const lifetimes = lifetimesOf(this.#subject.service.env)
    const binding = { siteKey, storeEpoch, lifetimes, address: parseAddress(this.from)! }
    const terms = { issuedAtMs: Date.now() - ageMs, difficulty }
    const nonce = mintNonce(keyring, terms, binding, randomInt(2 ** NONCE_RANDOM_BITS))
    return solutionOf(nonce, solve(nonce, difficulty))
  }

  verify(body: unknown, headers: Record<string, string> = {}): Promise<Answer> {
    return this.#subject.client.verify(this.site.siteKey, body, { from: this.from, headers })
  }

  async passed(more: Partial<Solution> = {}): Promise<Answer> {
    const answer = await this.verify(await this.solved(more))
    assertPassed(answer)
    return answer
  }

  async token(more: Partial<Solution> = {}): Promise<string> {
    return (await this.passed(more)).json.token
  }

  /** Redeems as the site's backend, from an address of its own. */
  redeem(body: unknown): Promise<Answer> {
    return this.#subject.redeem(body, this.site.apiKey)
  }

  async score(more: Partial<Solution> = {}): Promise<number> {
    const redemption = await this.redeem({ token: await this.token(more) })
    assertRedeemed(redemption)
    return redemption.json.score
  }
}

/** Resolves once all workers answer with this status, or so that this condition holds: so many connections reach each of them. */
export function untilAll(
  what: string,
  expected: number | ((answer: Answer) => boolean),
  ask: () => Promise<Answer>,
): Promise<unknown> {
  const isExpected = typeof expected === 'number' ? ({ status }: Answer) => status === expected : expected
  return eventually(PATIENCE_MS, what, async () => {
    const answers = await Promise.all(Array.from({ length: CONNECTIONS }, ask))
    return answers.every(isExpected)
  })
}

/** How many zero bits the proof's digest begins with, up to 32. One-shot hashes are many times as fast as Hash objects. */
export const proofBits = (nonce: string, counter: number): number =>
  Math.clz32(Number.parseInt(hash('sha256', nonce + counter, 'hex').slice(0, 8), 16))

/** A counter whose proof has fewer bits than the lowest difficulty of a site, 16. */
export function wrongCounter(nonce: string): number {
  for (let counter = 0; ; counter++) if (proofBits(nonce, counter) < 16) return counter
}

export function claimsOf(token: string, ring = keyring): TokenClaims {
  const reading = readToken(ring, token)
  assert(reading.status === 'genuine', `the token is ${reading.status}`)
  return reading.claims
}

const BASE64URL = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'

/**
 * Changes a character of base64url in the lowest of its 6 bits. A secret is 32 bytes in 43 characters, of which the last has 4 bits
 * of the secret and 2 that are left over: with its neighbour there, a decoder that is not strict would read the same secret.
 */
export const neighbour = (character: string): string => BASE64URL[BASE64URL.indexOf(character) ^ 1]!

/** At most so many refusals share a solution or token, because a visitor may send 20 solutions a minute. */
const SHARING_MAX = 15

/** One test for each case, and after some of them one that what they shared is still good. */
export function refusesAndSpendsNothing<Case, Shared>(refusals: {
  readonly cases: readonly Case[]
  readonly nameOf: (one: Case) => string
  /** Makes what the cases share: a solution or a token. */
  readonly make: () => Promise<Shared>
  readonly assertRefused: (one: Case, shared: Shared) => Promise<void>
  readonly assertUnspent: (shared: Shared) => Promise<void>
}): void {
  const { cases, nameOf, make, assertRefused, assertUnspent } = refusals
  for (let start = 0; start < cases.length; start += SHARING_MAX) {
    let made: Promise<Shared> | undefined
    const shared = () => (made ??= make())
    const some = cases.slice(start, start + SHARING_MAX)
    for (const one of some) test(nameOf(one), async () => assertRefused(one, await shared()))
    test(`§4.2, §4.3: the solution or token that came with these ${some.length} is still good`, async () =>
      assertUnspent(await shared()))
  }
}

export const UNKNOWN_SITE_KEY = `site_${'0'.repeat(22)}`
export const UNKNOWN_API_KEY = `sk_00000000_${'A'.repeat(43)}`

/** The API key, `sk_` and an id of 8 characters and `_`, with another secret of 43. */
export const withWrongSecret = (apiKey: string): string => apiKey.slice(0, 12) + 'A'.repeat(43)

/** The embedded store and Redis answer alike: both get the same random operations, in the same batches, at the same virtual times. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { ownerMeter, siteMeter, windowOfRefused } from '../../src/domain/address-tags.ts'
import { KEPT_MS_A_PROOF } from '../../src/domain/meters.ts'
import type { SolutionRequest } from '../../src/store/store.ts'
import { seeded } from '../harness/arbitraries.ts'
import {
  challengeOn,
  freshKey,
  freshNonce,
  openEmbeddedTwice,
  openRedisTwice,
  redemptionOn,
  solutionOn,
  type TestStore,
} from './harness.ts'

/** Redis forgets by real time, the embedded store by virtual time. So a nonce comes again only while both are sure to know it. */
const AGAIN_WITHIN_MS = 50_000
/** Likewise a run ends before the embedded store forgets the meter of a network that one proof came from; the next has other keys. */
const RUN_MS_MAX = KEPT_MS_A_PROOF - 1000
/** Rates are alike that differ by this share. */
const CLOSE = 1e-5

const pauses = fc.oneof(
  { weight: 5, arbitrary: fc.nat(30) },
  { weight: 3, arbitrary: fc.nat(3000) },
  { weight: 1, arbitrary: fc.integer({ min: 59_990, max: 60_010 }) },
)

const operations = fc.record({
  kind: fc.constantFrom('challenge', 'solution', 'solution', 'redemption', 'taking back'),
  address: fc.nat(1),
  network: fc.nat(1),
  site: fc.nat(1),
  times: fc.oneof(
    { weight: 3, arbitrary: fc.constant(1) },
    { weight: 1, arbitrary: fc.integer({ min: 2, max: 12 }) },
  ),
  /** Above 64 a nonce has a key of its own; above 256 requests are counted by steps of time. */
  addressLimit: fc.constantFrom(4, 8, 30, 64, 65, 300),
  siteLimit: fc.constantFrom(0, 4, 20, 64, 260),
  isMetered: fc.boolean(),
  hasNetworks: fc.boolean(),
  counts: fc.boolean(),
  hasApiKey: fc.boolean(),
  failed: fc.boolean(),
  /** A nonce that an earlier operation used, a new one, or none. */
  nonce: fc.constantFrom('new', 'new', 'new', 'again', 'none'),
  isOfOtherEpoch: fc.integer({ min: 0, max: 15 }).map(number => number === 0),
  livesMs: fc.constantFrom(60_000, 120_000, 600_000),
  claim: fc.constantFrom('', 'one', 'other'),
  isJunk: fc.boolean(),
})
type Operation = typeof operations extends fc.Arbitrary<infer Value> ? Value : never

/** The limits of callers and of API keys are settings, so no batch has two of one kind. */
const redemptionLimits = fc.record({
  callerLimit: fc.constantFrom(8, 60, 300),
  apiKeyLimit: fc.constantFrom(4, 20, 260),
})
type RedemptionLimits = typeof redemptionLimits extends fc.Arbitrary<infer Value> ? Value : never

const batches = fc.array(
  fc.record({ pauseMs: pauses, batch: fc.array(operations, { maxLength: 6, size: 'max' }) }),
  { maxLength: 60, size: 'max' },
)

type UsedNonce = { readonly nonce: string; readonly at: number }
/** What a solution or redemption spends; undefined for one without a nonce. */
type Spent = { readonly nonce: string; readonly expiresAtMs: number } | undefined

/** What one run of operations names, alike in both stores: keys (src/domain/address-tags.ts), and the nonces that it has used. */
class Run {
  readonly #limits: RedemptionLimits
  readonly #name = freshKey()
  readonly #networks = [freshKey(), freshKey()]
  readonly #used: { [kind: string]: UsedNonce[] } = { solution: [], redemption: [] }
  /** Accepted proofs of earlier batches, to be taken back, the oldest first: `takeBack` ignores those that no meter counted. */
  readonly #proofs: { request: SolutionRequest; accepted: number }[] = []

  constructor(limits: RedemptionLimits) {
    this.#limits = limits
  }

  /** Asks each store for what the operation says. @returns their answers; none for what has no answer */
  on(stores: readonly TestStore[], operation: Operation, now: number): Promise<unknown>[] {
    const { kind } = operation
    if (kind === 'challenge') return stores.map(({ store }) => challengeOn(store, this.#visit(operation)))
    const taken = kind === 'taking back' ? this.#proofs.shift() : undefined
    if (taken) for (const { store } of stores) store.requests.takeBack(taken.request, taken.accepted)
    if (kind === 'taking back') return stores.map(() => Promise.resolve())
    const nonce = this.#nonce(operation, now)
    const spent = nonce === undefined ? undefined : { nonce, expiresAtMs: now + operation.livesMs }
    return kind === 'solution'
      ? this.#solve(stores, operation, spent)
      : this.#redeem(stores, operation, spent)
  }

  #solve(stores: readonly TestStore[], operation: Operation, spent: Spent) {
    const visit = this.#visit(operation)
    return stores.map(async ({ store }, index) => {
      const storeEpoch = operation.isOfOtherEpoch ? 1 : store.requests.epochOf(visit.addressKey)!
      const request = { ...visit, failed: operation.failed, spend: spent && { ...spent, storeEpoch } }
      const admission = await solutionOn(store, request)
      const isSpent = admission.status === 'admitted' && admission.nonce === 'spent'
      if (isSpent && index === 0) this.#proofs.push({ request, accepted: admission.accepted }) // the other store answers alike
      return admission
    })
  }

  #redeem(stores: readonly TestStore[], operation: Operation, spent: Spent) {
    const { claim, isJunk } = operation
    const { callerLimit, apiKeyLimit } = this.#limits
    const siteKey = this.#siteKey(operation)
    const apiKey = operation.hasApiKey ? { id: siteKey.slice(-8), limit: apiKeyLimit, siteKey } : undefined
    const callerKey = `${this.#networks[0]}${operation.address}`
    return stores.map(({ store }) => {
      const storeEpoch = operation.isOfOtherEpoch ? 1 : store.requests.epochOf(siteKey)!
      const redeem = apiKey && spent && { ...spent, storeEpoch, claim }
      return redemptionOn(store, { callerKey, callerLimit, apiKey, redeem, isJunk })
    })
  }

  #visit(operation: Operation) {
    const { addressLimit, siteLimit, site, counts } = operation
    const network = this.#networks[operation.network]!.slice(0, -2) // without the bits of the address within it
    const addressKey = operation.address === 0 ? `${network}01` : windowOfRefused(`${network}02`)
    const networks = [ownerMeter(addressKey, 'sha256'), `e:${this.#name}wide`]
    const meters = [siteMeter(this.#siteKey(operation)), ...(operation.hasNetworks ? networks : [])]
    // So few are free that rates exceed half a budget, above which less is learned as usual. Stores learn so once they are an hour old,
    // which these become during the test, since all runs have one time of the first proof: only the whole test repeats a failure.
    const free = operation.hasNetworks ? [120, 4, 24] : [12]
    const metering = { firstProofs: ['e:born', 'e:born:test'] as const, meters, free, counts }
    return {
      addressKey,
      addressLimit,
      siteTag: siteLimit === 0 ? 0 : site + 1,
      siteLimit,
      metering: operation.isMetered ? metering : undefined,
    }
  }

  #siteKey({ site }: Operation): string {
    return `site_${this.#name}${String(site).padStart(10, '0')}`
  }

  #nonce({ kind, nonce }: Operation, now: number): string | undefined {
    if (nonce === 'none') return undefined
    const used = this.#used[kind]!
    const again = nonce === 'again' && used.findLast(({ at }) => now - at < AGAIN_WITHIN_MS)
    if (again) return again.nonce
    const fresh = freshNonce(now)
    used.push({ nonce: fresh, at: now })
    return fresh
  }
}

/** Equal but for the last digits of rates. */
function assertAlike(one: unknown, other: unknown, where: string): void {
  if (typeof one === 'number' && typeof other === 'number') {
    assert.ok(Math.abs(one - other) <= CLOSE * (1 + Math.abs(other)), `${where}: ${one} and ${other}`)
  } else if (typeof one === 'object' && typeof other === 'object' && one && other) {
    for (const name of Object.keys({ ...one, ...other }))
      assertAlike(Reflect.get(one, name), Reflect.get(other, name), `${where}.${name}`)
  } else {
    assert.equal(one, other, where)
  }
}

test('property: the embedded store and Redis give the same answers to the same operations at the same times', async t => {
  const stores = [await openEmbeddedTwice(), await openRedisTwice()] as const
  t.after(() => Promise.all(stores.map(store => store.close())))
  await fc.assert(
    fc.asyncProperty(redemptionLimits, batches, async (limits, steps) => {
      const run = new Run(limits)
      const endsAt = stores[0].clock.now + RUN_MS_MAX
      for (const [step, { pauseMs, batch }] of steps.entries()) {
        const now = stores[0].clock.now + pauseMs
        if (now > endsAt) break
        for (const { clock } of stores) clock.now = now
        const all = batch.flatMap(operation => Array.from({ length: operation.times }, () => operation))
        const answers = await Promise.all(all.map(operation => Promise.all(run.on(stores, operation, now))))
        for (const [index, [embedded, redis]] of answers.entries())
          assertAlike(embedded, redis, `step ${step}, ${all[index]!.kind} ${index}`)
      }
    }),
    seeded(60),
  )
})

/** The part of the conformance suite that compares the limits of a store with a simple model of them, in virtual time. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { type Policy, stepMs } from '../../src/domain/limits.ts'
import { seeded } from '../harness/arbitraries.ts'
import {
  challengeOn,
  freshKey,
  redemptionOn,
  SITE,
  solutionOn,
  spendable,
  type TestStore,
} from './harness.ts'

const WINDOW_MS = 60_000

/** The limits as contract §8 states them, as simply as possible: a list of the times of admitted requests. */
class LimitModel {
  readonly #admitted: { at: number; label: string }[] = []

  /** Times of the requests that were admitted under a label after a moment. */
  since(label: string, moment: number): number[] {
    return this.#admitted.filter(entry => entry.label === label && entry.at > moment).map(({ at }) => at)
  }

  /** Milliseconds until one more request would fit; 0 if it fits now. */
  waitMs(label: string, limit: number, now: number): number {
    const live = this.since(label, now - WINDOW_MS)
    const excess = live.length - limit + 1
    return excess <= 0 ? 0 : live[excess - 1]! + WINDOW_MS - now
  }

  admit(labels: readonly string[], now: number): void {
    for (const label of labels) this.#admitted.push({ at: now, label })
  }
}

/** Steps of virtual time: bursts, ordinary pauses, and the edge of the window. */
const pauses = fc.oneof(
  { weight: 5, arbitrary: fc.integer({ min: 0, max: 50 }) },
  { weight: 3, arbitrary: fc.integer({ min: 50, max: 8000 }) },
  { weight: 1, arbitrary: fc.integer({ min: 59_990, max: 60_010 }) },
)

const addressSteps = fc.array(
  fc.record({
    pauseMs: pauses,
    endpoint: fc.constantFrom('challenge' as const, 'verify' as const),
    site: fc.nat(2),
    isKnownSite: fc.boolean(),
    times: fc.integer({ min: 1, max: 12 }),
  }),
  { minLength: 1, maxLength: 40 },
)

const callerSteps = fc.array(
  fc.record({
    pauseMs: pauses,
    key: fc.nat(1),
    isKnownKey: fc.boolean(),
    caller: fc.nat(1),
    times: fc.integer({ min: 1, max: 12 }),
  }),
  { minLength: 1, maxLength: 40 },
)

export function limitsProperty(under: () => TestStore): void {
  test('property: an address at /challenge and /verify: never above a limit, never a false refusal, exact waits', async () => {
    await fc.assert(
      fc.asyncProperty(addressSteps, async steps => {
        const model = new LimitModel()
        const addressKey = freshKey()
        for (const { pauseMs, endpoint, site, isKnownSite, times } of steps) {
          under().clock.now += pauseMs
          const limits = endpoint === 'challenge' ? { address: 12, site: 7 } : { address: 9, site: 4 } // low, to be reached
          const [siteTag, siteLimit] = isKnownSite ? [site + 1, limits.site] : [0, 0] // an unknown site has no limit
          const { store, other, clock } = under()
          const visit = { addressKey, addressLimit: limits.address, siteTag, siteLimit }
          const ask = (client: TestStore['store']) =>
            endpoint === 'challenge'
              ? challengeOn(client, visit)
              : solutionOn(client, { ...visit, spend: spendable(client, addressKey, clock.now) })
          const labels = isKnownSite ? [endpoint, `${endpoint} ${site}`] : [endpoint]
          const asks = Array.from({ length: times }, (_, index) => ask(index % 2 ? store : other))
          for (const answer of inOrderOfAdmission(await Promise.all(asks))) {
            const { now } = clock
            const siteMs = isKnownSite ? model.waitMs(`${endpoint} ${site}`, limits.site, now) : 0
            const addressMs = model.waitMs(endpoint, limits.address, now)
            assertDecision(answer, { address: addressMs, 'address-site': siteMs })
            if (answer.status === 'admitted') model.admit(labels, now)
          }
        }
      }),
      seeded(60),
    )
  })

  test('property: callers and API keys at /verify-token, checked together and charged together', async () => {
    await fc.assert(
      fc.asyncProperty(callerSteps, async steps => {
        const model = new LimitModel()
        const callers = [freshKey(), freshKey()]
        const keys = [freshKey(), freshKey()]
        for (const { pauseMs, key, isKnownKey, caller, times } of steps) {
          under().clock.now += pauseMs
          const [callerLimit, limit] = [8, 11] // low, to be reached
          const apiKey = isKnownKey ? { id: keys[key]!, limit, siteKey: SITE } : undefined
          const request = { callerKey: callers[caller]!, callerLimit, apiKey }
          for (let index = 0; index < times; index++) {
            const answer = await redemptionOn(index % 2 ? under().store : under().other, request)
            const now = under().clock.now
            const keyMs = isKnownKey ? model.waitMs(`key ${key}`, limit, now) : 0
            assertDecision(answer, {
              address: model.waitMs(`caller ${caller}`, callerLimit, now),
              'api-key': keyMs,
            })
            const labels = isKnownKey ? [`caller ${caller}`, `key ${key}`] : [`caller ${caller}`]
            if (answer.status === 'admitted') model.admit(labels, now)
          }
        }
      }),
      seeded(30),
    )
  })

  test('above 256 a minute: never above the limit; refused at most one step of time longer than by the exact model; waiting admits', async () => {
    const limit = 400
    const model = new LimitModel()
    const apiKey = { id: freshKey(), limit, siteKey: SITE }
    const once = () => redemptionOn(under().store, { callerKey: freshKey(), apiKey })
    for (let step = 0; step < 1500; step++) {
      under().clock.now += (step * 7919) % 241 // pauses of 0 to 240 ms, which look random; a step of time has 235
      const answer = await once()
      if (answer.status === 'admitted') {
        assert.ok(model.since('key', under().clock.now - WINDOW_MS).length < limit, 'above the limit')
        model.admit(['key'], under().clock.now)
        continue
      }
      assert.equal(answer.status, 'limited')
      const windowAndStepAgo = under().clock.now - WINDOW_MS - stepMs(limit)
      assert.ok(model.since('key', windowAndStepAgo).length >= limit, 'refused for more than a step too long')
      if (step % 10 === 0 && answer.status === 'limited') {
        under().clock.now += answer.retryAfterMs
        assert.equal((await once()).status, 'admitted', 'refused after waiting')
        const counted = model.since('key', under().clock.now - WINDOW_MS).length
        assert.ok(counted < limit, 'above the limit after waiting')
        model.admit(['key'], under().clock.now)
      }
    }
  })
}

/** Admitted if no limit makes it wait, else refused by the one that makes it wait longest, of equals by the first. */
function assertDecision(
  answer: { status: string; retryAfterMs?: number; policy?: Policy },
  waits: Partial<Record<Policy, number>>,
): void {
  const [[policy, wait]] = Object.entries(waits).sort(([, a], [, b]) => b - a) as [[Policy, number]]
  const { status, retryAfterMs } = answer
  if (wait === 0) assert.equal(status, 'admitted')
  else assert.deepEqual([status, retryAfterMs, answer.policy], ['limited', wait, policy])
}

/** Two clients race: whichever requests were admitted came first. */
function inOrderOfAdmission<Answer extends { status: string }>(answers: readonly Answer[]): Answer[] {
  return [...answers].sort((a, b) => Number(a.status !== 'admitted') - Number(b.status !== 'admitted'))
}

/**
 * The conformance suite of stores. Each implementation's test file calls this suite with its own factory. All tests share one store,
 * `under`, whose clock only goes on; so each test has keys and nonces of its own.
 */

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { MARKS_LIMIT_MAX } from '../../src/domain/address-log.ts'
import type { StoreClient } from '../../src/store/client/store-client.ts'
import type { RedemptionRequest } from '../../src/store/store.ts'
import {
  challengeOn,
  freshKey,
  freshNonce,
  nonceOn,
  redeemable,
  redemptionOn,
  SITE,
  type StoreMaker,
  solutionOn,
  spendable,
  type TestStore,
  tokenOn,
} from './harness.ts'
import { limitsProperty } from './limits-property.ts'
import { meterTests } from './meters-conformance.ts'
import { siteConformance } from './site-conformance.ts'

/** The answer about an address that did nothing, without metering. */
const ADMITTED = { status: 'admitted', failures: 0, accepted: 0, meters: undefined }

export function storeConformance(name: string, make: StoreMaker): void {
  describe(`store conformance: ${name}`, () => {
    let under: TestStore
    before(async () => {
      under = await make()
    })
    after(() => under.close())
    const store = () => under.store
    const other = () => under.other
    const now = () => under.clock.now
    /** An epoch that the store does not have. */
    const otherEpoch = (key = SITE) => (store().requests.epochOf(key)! ^ 1) >>> 0
    /** What spends a nonce, and what redeems a token of that nonce. */
    const spend = (nonce: string, addressKey: string) => {
      return { ...spendable(store(), addressKey, now()), nonce }
    }
    const redeem = (nonce: string, claim = '', storeEpoch = store().requests.epochOf(SITE)!) => {
      return { ...redeemable(store(), now()), nonce, claim, storeEpoch }
    }

    const clientOf = (index: number) => (index % 2 ? store() : other())
    /** How many of the outcomes are of each kind. */
    const counts = (outcomes: readonly string[], ...kinds: readonly string[]) =>
      kinds.map(kind => outcomes.filter(outcome => outcome === kind).length)

    test('challenges and solutions have separate limits, and both are told of failed solutions; without a nonce none is an accepted proof', async () => {
      const addressKey = freshKey()
      for (let count = 0; count < 20; count++) {
        const admission = await solutionOn(store(), { addressKey, failed: count < 4 })
        assert.deepEqual(admission, { ...ADMITTED, nonce: 'untouched', failures: Math.min(count, 4) })
      }
      assert.equal((await solutionOn(store(), { addressKey })).status, 'limited')
      const here = await challengeOn(store(), { addressKey })
      assert.deepEqual(here, { ...ADMITTED, siteCount: 0, failures: 4 })
      const elsewhere = await challengeOn(store(), { addressKey, siteTag: 9 })
      assert.deepEqual(elsewhere, { ...ADMITTED, siteCount: 0 })
    })

    test('a proof counts for five minutes, for which its nonce is known, also beside nonces whose marks differ in one bit or two', async () => {
      const addressKey = freshKey()
      const first = freshNonce(now())
      // A mark is digits 22 to 31 (`nonceMark`), which an address log keeps in two parts, up to digit 27 and from 28 on.
      const alike = ['0', '1', '2'].map(digit => first.slice(0, 27) + digit + first.slice(28))
      for (const nonce of alike)
        assert.equal(await nonceOn(store(), { addressKey, spend: spend(nonce, addressKey) }), 'spent')
      const accepted: number[] = []
      for (const pauseMs of [0, 120_000, 179_000, 2000]) {
        under.clock.now += pauseMs
        const answer = await challengeOn(store(), { addressKey })
        accepted.push(answer.status === 'admitted' ? answer.accepted : -1)
      }
      assert.deepEqual(accepted, [3, 3, 3, 0])
    })

    test('after a limit was lowered, the wait lasts until enough requests have left; of two limits the longer counts', async () => {
      const [addressKey, callerKey, id] = [freshKey(), freshKey(), freshKey().slice(0, 8)]
      const challenge = (addressLimit: number) =>
        challengeOn(store(), { addressKey, addressLimit, siteLimit: 20 })
      const redemption = (callerLimit: number, limit: number) =>
        redemptionOn(store(), { callerKey, callerLimit, apiKey: { id, limit, siteKey: SITE } })
      for (let count = 0; count < 10; count++) {
        under.clock.now += 1000
        await challenge(20)
        await redemption(20, 20)
      }
      // Of ten, a second apart, six must leave before one fits under a limit of five: the sixth is four seconds old.
      const limited = (policy: string) => ({ status: 'limited', retryAfterMs: 56_000, policy })
      assert.deepEqual(await challenge(5), limited('address'))
      assert.deepEqual(await redemption(5, 8), limited('address'))
      assert.deepEqual(await redemption(8, 5), limited('api-key'))
    })

    test('above a limit of 64 (MARKS_LIMIT_MAX), proofs of five minutes are those of the last one, five times; a single proof is one', async () => {
      const addressKey = freshKey()
      const acceptedFirst: number[] = []
      for (let count = 0; count < 90; count++) {
        const limits = { addressKey, addressLimit: 100, siteLimit: 100 }
        const answer = await solutionOn(store(), { ...limits, spend: spend(freshNonce(now()), addressKey) })
        assert.ok(answer.status === 'admitted')
        if (count < 3) acceptedFirst.push(answer.accepted)
      }
      const challenge = await challengeOn(store(), { addressKey })
      assert.deepEqual(challenge, { ...ADMITTED, siteCount: 0, accepted: 450 })
      assert.deepEqual(acceptedFirst, [0, 1, 10], 'before the third there are two, five times')
      // At this limit each nonce has a key of its own. A solution without one has none, which must not shift the keys of others in its batch.
      const [failed, next] = [{ addressKey, addressLimit: 100, siteLimit: 100, failed: true }, freshKey()]
      await Promise.all([solutionOn(store(), failed), challengeOn(store(), { addressKey: next })])
      const counted = { ...ADMITTED, siteCount: 1 }
      assert.deepEqual(await challengeOn(store(), { addressKey: next }), counted)
    })

    test('300 challenges at once are answered in order', async () => {
      const addressKey = freshKey()
      const admissions = Array.from({ length: 300 }, () => challengeOn(store(), { addressKey }))
      for (const [index, admission] of (await Promise.all(admissions)).entries())
        assert.equal(admission.status === 'admitted' && admission.siteCount, index < 30 && index) // 30 are admitted
    })

    // Up to the first limit, used nonces are in their address' log; above it each has a key of its own.
    for (const limit of [MARKS_LIMIT_MAX, MARKS_LIMIT_MAX + 1]) {
      test(`a spent nonce stays used until it expires, at a limit of ${limit}`, async () => {
        const addressKey = freshKey()
        const limits = { addressKey, addressLimit: limit, siteLimit: limit }
        const spendOn = (client: StoreClient, spending: ReturnType<typeof spend>) =>
          nonceOn(client, { ...limits, spend: spending })
        const spendings = Array.from({ length: 20 }, () => spend(freshNonce(now()), addressKey))
        for (const spending of spendings) {
          under.clock.now += 1400
          assert.equal(await spendOn(store(), spending), 'spent')
          await challengeOn(store(), { addressKey })
        }
        for (const pauseMs of [0, 61_000, 30_000]) {
          under.clock.now += pauseMs
          for (const spending of spendings) assert.equal(await spendOn(other(), spending), 'used')
          await challengeOn(store(), { addressKey })
          assert.equal(await spendOn(store(), spend(freshNonce(now()), addressKey)), 'spent')
        }
      })
    }

    test('a solution of another store epoch is refused as used', async () => {
      const addressKey = freshKey()
      const stale = { ...spend(freshNonce(now()), addressKey), storeEpoch: otherEpoch(addressKey) }
      assert.equal(await nonceOn(store(), { addressKey, spend: stale }), 'used')
    })

    test('a solution beyond the limit does not spend its nonce', async () => {
      const addressKey = freshKey()
      const nonce = freshNonce(now())
      for (let count = 0; count < 20; count++) await solutionOn(store(), { addressKey })
      assert.equal(await nonceOn(store(), { addressKey, spend: spend(nonce, addressKey) }), 'limited')
      under.clock.now += 60_000
      assert.equal(await nonceOn(store(), { addressKey, spend: spend(nonce, addressKey) }), 'spent')
    })

    for (const [nonces, times, limit] of [
      [5, 12, MARKS_LIMIT_MAX],
      [100, 16, 100_000],
    ] as const)
      test(`race: ${nonces} nonces, ${times} concurrent submissions each by two clients, at a limit of ${limit}`, async () => {
        // One address, as in reality: a nonce is bound to it.
        const addressKey = freshKey()
        const limits = { addressKey, addressLimit: limit, siteLimit: limit }
        const spendings = Array.from({ length: nonces }, () => spend(freshNonce(now()), addressKey))
        const outcomes = spendings.flatMap(spending =>
          Array.from({ length: times }, (_, index) =>
            nonceOn(clientOf(index), { ...limits, spend: spending }),
          ),
        )
        const found = counts(await Promise.all(outcomes), 'spent', 'used')
        assert.deepEqual(found, [nonces, nonces * (times - 1)])
      })

    test('junk fills windows of its own: neither it nor what is redeemed for the first time takes from the other', async () => {
      const [callerKey, apiKey] = [freshKey(), { id: freshKey().slice(0, 8), limit: 5, siteKey: SITE }]
      const ask = (more: Partial<RedemptionRequest>) =>
        tokenOn(store(), { callerKey, callerLimit: 4, apiKey, ...more })
      const used = redeem(freshNonce(now()))
      assert.equal(await ask({ redeem: used }), 'redeemed')
      // The caller's four as junk: a forged token, and three times one that was redeemed.
      assert.equal(await ask({ isJunk: true }), 'untouched')
      const again = await Promise.all([1, 2, 3].map(() => ask({ redeem: used })))
      assert.deepEqual(again, ['used', 'used', 'used'])
      // The API key's fifth as junk, by another caller.
      const fromElsewhere = { callerKey: freshKey(), redeem: used }
      assert.deepEqual([await ask(fromElsewhere), await ask(fromElsewhere)], ['used', 'limited as junk'])
      // Both windows of junk are full. Of a token that the caller did not know to be junk, the store says so.
      const forgotten = redeem(freshNonce(now()), '', otherEpoch())
      assert.equal(await ask({ isJunk: true }), 'limited')
      for (const spent of [used, forgotten]) assert.equal(await ask({ redeem: spent }), 'limited as junk')
      // With the first one, these are the caller's four.
      for (const expected of ['redeemed', 'redeemed', 'redeemed', 'limited'])
        assert.equal(await ask({ redeem: redeem(freshNonce(now())) }), expected)
      assert.equal(await ask({ callerKey: freshKey(), redeem: redeem(freshNonce(now())) }), 'redeemed')
      const sixth = { callerKey: freshKey(), redeem: redeem(freshNonce(now())) }
      assert.equal(await ask(sixth), 'limited', 'the API key has redeemed its five')
    })

    test('a used nonce and a redeemed token are different marks', async () => {
      const nonce = freshNonce(now())
      await solutionOn(store(), { addressKey: '0a000001', spend: spend(nonce, '0a000001') })
      assert.equal(await tokenOn(store(), { redeem: redeem(nonce) }), 'redeemed')
    })

    test('a claim gets its answer again, another claim or none does not', async () => {
      const nonce = freshNonce(now())
      const as = (claim: string) => tokenOn(other(), { redeem: redeem(nonce, claim) })
      for (const claim of ['claim-a', 'claim-a']) assert.equal(await as(claim), 'redeemed')
      for (const claim of ['claim-b', '']) assert.equal(await as(claim), 'used')
      const unnamed = freshNonce(now())
      assert.equal(await tokenOn(store(), { redeem: redeem(unnamed) }), 'redeemed')
      assert.equal(await tokenOn(store(), { redeem: redeem(unnamed, 'claim-a') }), 'used')
    })

    test('a redemption of another store epoch is refused as forgotten and spends nothing', async () => {
      const nonce = freshNonce(now())
      assert.equal(await tokenOn(store(), { redeem: redeem(nonce, '', otherEpoch()) }), 'forgotten')
      assert.equal(await tokenOn(store(), { redeem: redeem(nonce) }), 'redeemed')
    })

    test("a redemption beyond the caller's limit does not spend the token", async () => {
      const request = { callerKey: freshKey(), callerLimit: 1, redeem: redeem(freshNonce(now())) }
      await redemptionOn(store(), { ...request, redeem: undefined })
      assert.equal(await tokenOn(store(), request), 'limited')
      assert.equal(await tokenOn(store(), { redeem: request.redeem }), 'redeemed')
    })

    test('redemptions beyond the limit of the API key do not charge the caller, even while others join its step of time', async () => {
      const apiKey = { id: freshKey(), limit: 1, siteKey: SITE }
      await redemptionOn(store(), { callerKey: freshKey(), apiKey })
      // The callers are on several shards, or on the API key's own.
      for (let caller = 0; caller < 6; caller++) {
        // A limit above 256 makes requests of one step, 235 ms, one entry with the time of the last.
        const request = { callerKey: freshKey(), callerLimit: 300 }
        const refusals: Promise<{ status: string }>[] = []
        for (let count = 0; count < 30; count++) {
          refusals.push(redemptionOn(clientOf(count), { ...request, apiKey }))
          under.clock.now += 1
          await new Promise(resolve => setImmediate(resolve))
        }
        for (const { status } of await Promise.all(refusals)) assert.equal(status, 'limited')
        const withoutKey = () => redemptionOn(store(), { ...request, apiKey: undefined })
        const answers = await Promise.all(Array.from({ length: 301 }, withoutKey))
        assert.equal(answers.filter(({ status }) => status === 'admitted').length, 300)
      }
    })

    test('race: 100 tokens, 32 concurrent redemptions each by two clients: 100 redeemed', async () => {
      const apiKey = { id: 'race0001', limit: 1_000_000, siteKey: SITE }
      const request = { callerKey: '7f0000ff', callerLimit: 1_000_000, apiKey }
      const redeemAtOnce = (mark: ReturnType<typeof redeem>) =>
        Promise.all(
          Array.from({ length: 32 }, (_, index) => tokenOn(clientOf(index), { ...request, redeem: mark })),
        )
      const marks = Array.from({ length: 100 }, () => redeem(freshNonce(now())))
      for (const outcomes of await Promise.all(marks.map(redeemAtOnce)))
        assert.deepEqual(counts(outcomes, 'redeemed'), [1])
    })

    limitsProperty(() => under)
    siteConformance(() => under)

    meterTests(() => under, make)
  })
}

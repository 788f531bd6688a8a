/** Meters in a store: both clients add to the same ones, and each answer is what the rules of the domain compute. */

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  addProof,
  fadeAll,
  KEPT_MS_A_PROOF,
  type Meter,
  type Meters,
  metersFrom,
  newMeter,
  renewFirstProof,
} from '../../src/domain/meters.ts'
import { PRICING } from '../../src/domain/pricing.ts'
import type { Metering, SolutionRequest } from '../../src/store/store.ts'
import { challengeOn, meteringOf, type StoreMaker, solutionOn, spendable, type TestStore } from './harness.ts'

/** A night: long enough that usual rates fade a little. */
const NIGHT_MS = PRICING.usualMs / 24
/** Steps while all traffic is still learned as usual: a third of that time passes at the first, and then comes a burst. */
const EARLY = { pause: 20, burstUntil: 38 }
/** The step at which the clock is set back. */
const SET_BACK = 399
let next = 0

/** A site of its own, and networks that no other test uses. (Layout of keys: src/domain/address-tags.ts.) */
function freshMetering(): Metering {
  next++
  const addressKey = `9${next.toString(16).padStart(3, '0')}..ownr01`
  return { ...meteringOf(addressKey, `site_${String(next).padStart(22, '0')}`), free: [40, 8, 24] }
}

const addressIn = ({ meters }: Metering, index: number) =>
  `${meters[1]!.slice('e:'.length)}${(index % 64).toString(16).padStart(2, '0')}`

type Client = Pick<TestStore, 'store' | 'clock'>

function solutionIn({ store, clock }: Client, metering: Metering, index: number): SolutionRequest {
  const addressKey = addressIn(metering, index)
  const spend = spendable(store, addressKey, clock.now)
  return { addressKey, siteTag: 1, addressLimit: 64, siteLimit: 64, metering, failed: false, spend }
}

const proofOn = (client: Client, metering: Metering, index: number) =>
  solutionOn(client.store, solutionIn(client, metering, index))

/** How many milliseconds pass before a step. */
function elapsedAt(step: number): number {
  if (step === SET_BACK) return -600_000
  if (step === EARLY.pause) return PRICING.learnsAllMs / 3
  const isAttack = step > 250 || (step > EARLY.pause && step < EARLY.burstUntil)
  const isNight = step > 40 && step % 40 === 39
  return isAttack ? 3 : isNight ? NIGHT_MS : 1500
}

function close(is: number, ought: number, what: string): void {
  assert.ok(Math.abs(is - ought) <= 1e-5 * (1 + Math.abs(ought)), `${what}: ${is} instead of ${ought}`)
}

const listOf = ({ site, networks }: Meters): Meter[] => [site, ...networks]

/** Runs a test on a store of its own, whose clock may leap. */
const onOwn = (make: StoreMaker, test: (own: TestStore) => Promise<void>) => async () => {
  const own = await make()
  await test(own).finally(() => own.close())
}

/** The counting alone. */
export function metersConformance(name: string, make: StoreMaker): void {
  test(
    `meters, ${name}: as the domain computes them: learning, an attack, what is taken back, nights, a clock that is set`,
    onOwn(make, async own => {
      const metering = freshMetering()
      const { firstProofs, meters } = metering
      const list = [...firstProofs, ...meters].map(() => newMeter(own.clock.now))
      const ages = list.slice(0, 2) // of the store, and of the names in it
      let most = 0
      // As of a private address: it names the site's meter alone, and begins the store's age too.
      const alone = { ...metering, meters: meters.slice(0, 1), free: metering.free.slice(0, 1) }
      await solutionOn(own.store, { ...solutionIn(own, metering, 0), metering: alone })
      for (const age of ages) renewFirstProof(age, own.clock.now)
      for (let step = 0; step < 400; step++) {
        own.clock.now += elapsedAt(step)
        const store = step % 2 ? own.store : own.other
        const answer = await proofOn({ store, clock: own.clock }, metering, step % 7)
        assert.ok(answer.status === 'admitted', String(step))
        for (const age of ages) renewFirstProof(age, own.clock.now)
        const model = metersFrom(list, own.clock.now)
        fadeAll(model, own.clock.now, PRICING)
        addProof(model, metering.free, answer.accepted, 1, PRICING)
        const found = answer.meters!
        close(found.ageMs, model.ageMs, `step ${step}, age`)
        close(found.namesAgeMs, model.namesAgeMs, `step ${step}, age of names`)
        for (const [index, meter] of listOf(model).entries())
          for (const field of ['atMs', 'recent', 'usual'] as const)
            close(listOf(found)[index]![field], meter[field], `step ${step}, meter ${index}, ${field}`)
        most = Math.max(most, model.site.recent)
        if (step % 5 !== 0 && step % 40 !== 39) continue
        own.clock.now += step % 2 // what was counted fades before it is taken back
        fadeAll(model, own.clock.now, PRICING)
        const request = solutionIn({ store, clock: own.clock }, metering, step % 7)
        store.requests.takeBack(request, answer.accepted)
        store.requests.takeBack({ ...request, failed: true }, answer.accepted) // was not counted
        addProof(model, metering.free, answer.accepted, -1, PRICING)
        await challengeOn(store, { addressKey: `${addressIn(metering, 0)}c` }) // until it was taken back
      }
      assert.ok(most > 10, 'there was an attack')
    }),
  )
}

export function meterTests(under: () => TestStore, make: StoreMaker): void {
  describe('meters', () => {
    metersConformance('the rules', make)

    test('race: of 40 concurrent proofs by two clients each is counted once, and seen by those after it', async () => {
      const { store, other, clock } = under()
      const metering = freshMetering()
      const answers = await Promise.all(
        Array.from({ length: 40 }, (_, index) =>
          proofOn({ store: index % 2 ? store : other, clock }, metering, index),
        ),
      )
      const seen = answers.map(answer => answer.status === 'admitted' && answer.meters!.networks[0]!.recent)
      assert.deepEqual(
        seen.sort((one, other) => Number(one) - Number(other)),
        Array.from({ length: 40 }, (_, index) => index + 1),
      )
    })

    test('a meter counts a solution that spends its nonce, and no challenge, failure or second use', async () => {
      const { store, clock } = under()
      const metering = freshMetering()
      const addressKey = addressIn(metering, 1)
      const spend = () => spendable(store, addressKey, clock.now)
      const twice = spend()
      await challengeOn(store, { addressKey, metering })
      await solutionOn(store, { addressKey, metering, failed: true, spend: spend() })
      await solutionOn(store, { addressKey, metering })
      await solutionOn(store, { addressKey, metering, spend: twice })
      await solutionOn(store, { addressKey, metering, spend: twice })
      await solutionOn(store, { addressKey, metering: { ...metering, counts: false }, spend: spend() })
      await solutionOn(store, { addressKey, metering, spend: { ...spend(), storeEpoch: 1 } })
      const answer = await challengeOn(store, { addressKey, metering })
      assert.ok(answer.status === 'admitted')
      assert.deepEqual([answer.meters!.networks[0]!.recent, answer.meters!.site.recent], [1, 0])
    })

    test(
      'the meter of a new network expires after minutes, one that many come from later, and the usual rate is told',
      onOwn(make, async own => {
        const metering = freshMetering()
        const siteKey = metering.meters[0]!.slice(2)
        assert.equal(await own.other.sites.readUsualRate(siteKey), undefined)
        await proofOn(own, metering, 0)
        const seconds = await own.expires?.(metering.meters[1]!)
        const most = KEPT_MS_A_PROOF / 1000
        if (seconds !== undefined) assert.ok(seconds > most - 60 && seconds <= most, `${seconds}`)
        for (let proof = 0; proof < 50; proof++) await proofOn(own, metering, 0)
        const later = await own.expires?.(metering.meters[1]!)
        if (later !== undefined) assert.ok(later >= 12_000, `${later}`)
        assert.ok((await own.other.sites.readUsualRate(siteKey))! > 0)
      }),
    )
  })
}

/** Meters in a store: both clients add to the same ones, and each answer is what the rules of the domain compute. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
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

/** An hour without proofs: long enough that usual rates fade a little. */
const LULL_MS = PRICING.usualMs / 24
/** While a store is young, all traffic is learned as usual: a third of that time passes at the step `pause`, and then comes a burst. */
const EARLY = { pause: 20, burstUntil: 38 }
const STEPS = 400
/** At the last step the clock is set back. */
const SET_BACK = STEPS - 1
let next = 0

/** A site of its own, and a network that no other test uses, as tags of `freshKey` have no dots. (Layout: src/domain/address-tags.ts.) */
function freshMetering(): Metering {
  next++
  const addressKey = `9${next.toString(16).padStart(3, '0')}..ownr01`
  const free = [40, 8, 24] // of the site, the owner's network and the wide one: few, so that the steps below exceed them
  return { ...meteringOf(addressKey, `site_${String(next).padStart(22, '0')}`), free }
}

/** The key of an address in the network whose meter is the second. */
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

/** How many milliseconds pass before a proof. */
function elapsedAt(step: number): number {
  if (step === SET_BACK) return -600_000
  if (step === EARLY.pause) return PRICING.learnsAllMs / 3
  const isAttack = step > 250 || (step > EARLY.pause && step < EARLY.burstUntil)
  if (isAttack) return 3
  return step > 40 && isFortieth(step) ? LULL_MS : 1500
}

const isFortieth = (step: number) => step % 40 === 39

function assertClose(is: number, ought: number, what: string): void {
  assert.ok(Math.abs(is - ought) <= 1e-5 * (1 + Math.abs(ought)), `${what}: ${is} instead of ${ought}`)
}

const metersOf = ({ site, networks }: Meters): Meter[] => [site, ...networks]

/** Runs a test on a store of its own, whose clock may leap. */
const onOwn = (make: StoreMaker, test: (own: TestStore) => Promise<void>) => async () => {
  const own = await make()
  await test(own).finally(() => own.close())
}

/** Gives a store and the rules of the domain (the model) the same proofs, and compares all that the store answers. */
export function metersConformance(name: string, make: StoreMaker): void {
  test(
    `meters, ${name}: as the domain computes them: learning, an attack, what is taken back, lulls, a clock that is set`,
    onOwn(make, async own => {
      const metering = freshMetering()
      const { firstProofs, meters } = metering
      const list = [...firstProofs, ...meters].map(() => newMeter(own.clock.now))
      const ages = list.slice(0, 2) // of the store, and of networks' names in it, which a new first secret changes
      let siteRecentMax = 0
      // A private address names the site's meter alone. Its proof, too, begins both ages.
      const alone = { ...metering, meters: meters.slice(0, 1), free: metering.free.slice(0, 1) }
      await solutionOn(own.store, { ...solutionIn(own, metering, 0), metering: alone })
      for (const age of ages) renewFirstProof(age, own.clock.now)
      for (let step = 0; step < STEPS; step++) {
        own.clock.now += elapsedAt(step)
        const store = step % 2 ? own.store : own.other
        const answer = await proofOn({ store, clock: own.clock }, metering, step % 7)
        assert.ok(answer.status === 'admitted', String(step))
        for (const age of ages) renewFirstProof(age, own.clock.now)
        const model = metersFrom(list, own.clock.now)
        fadeAll(model, own.clock.now, PRICING)
        addProof(model, metering.free, answer.accepted, 1, PRICING)
        const found = answer.meters!
        assertClose(found.ageMs, model.ageMs, `step ${step}, age`)
        assertClose(found.namesAgeMs, model.namesAgeMs, `step ${step}, age of names`)
        for (const field of ['atMs', 'recent', 'usual'] as const)
          for (const [index, meter] of metersOf(model).entries())
            assertClose(metersOf(found)[index]![field], meter[field], `step ${step}, ${field} ${index}`)
        siteRecentMax = Math.max(siteRecentMax, model.site.recent)
        const isTakenBack = step % 5 === 0 || isFortieth(step)
        if (!isTakenBack) continue
        own.clock.now += step % 2 // what was counted fades before it is taken back
        fadeAll(model, own.clock.now, PRICING)
        const request = solutionIn({ store, clock: own.clock }, metering, step % 7)
        store.requests.takeBack(request, answer.accepted)
        store.requests.takeBack({ ...request, failed: true }, answer.accepted) // was not counted
        addProof(model, metering.free, answer.accepted, -1, PRICING)
        // Taking back has no answer; this comes after it, of another address, so that it counts nothing here.
        await challengeOn(store, { addressKey: `${addressIn(metering, 0)}c` })
      }
      assert.ok(siteRecentMax > 10, 'there was an attack')
    }),
  )
}

export function meterTests(under: () => TestStore, make: StoreMaker): void {
  metersConformance('the rules', make)

  test('race: of 40 concurrent proofs by two clients each is counted once, and seen by those after it', async () => {
    const { store, other, clock } = under()
    const metering = freshMetering()
    const numbers = Array.from({ length: 40 }, (_, index) => index + 1)
    const clientOf = (number: number) => ({ store: number % 2 ? store : other, clock })
    const answers = await Promise.all(numbers.map(number => proofOn(clientOf(number), metering, number)))
    const seen = answers.map(answer => answer.status === 'admitted' && answer.meters!.networks[0]!.recent)
    assert.deepEqual(new Set(seen), new Set(numbers), 'the first sees itself alone, the last all')
  })

  test('a meter counts a solution that spends its nonce, and nothing else', async () => {
    const { store, clock } = under()
    const metering = freshMetering()
    const addressKey = addressIn(metering, 1)
    const spend = () => spendable(store, addressKey, clock.now)
    const solve = (request: Partial<SolutionRequest>) =>
      solutionOn(store, { addressKey, metering, ...request })
    const once = spend()
    await solve({ spend: once })
    await solve({ spend: once }) // used by now
    await challengeOn(store, { addressKey, metering })
    await solve({ spend: spend(), failed: true })
    await solve({ spend: undefined })
    await solve({ spend: spend(), metering: { ...metering, counts: false } })
    await solve({ spend: { ...spend(), storeEpoch: 1 } })
    const answer = await challengeOn(store, { addressKey, metering })
    assert.ok(answer.status === 'admitted')
    assert.deepEqual([answer.meters!.networks[0]!.recent, answer.meters!.site.recent], [1, 0])
  })

  test(
    'the meter of a new network expires after minutes, one that many come from later, and the usual rate is told',
    onOwn(make, async own => {
      const metering = freshMetering()
      const siteKey = metering.meters[0]!.slice('e:'.length)
      assert.equal(await own.other.sites.readUsualRate(siteKey), undefined)
      await proofOn(own, metering, 0)
      /** Of that time, a minute may have passed. */
      const assertKept = async (proofs: number) => {
        const seconds = await own.expires?.(metering.meters[1]!)
        const most = (proofs * KEPT_MS_A_PROOF) / 1000
        assert.ok(seconds === undefined || (seconds > most - 60 && seconds <= most), `${seconds} of ${most}`)
      }
      await assertKept(1)
      for (let proof = 0; proof < 50; proof++) await proofOn(own, metering, 0)
      await assertKept(51)
      assert.ok((await own.other.sites.readUsualRate(siteKey))! > 0)
    }),
  )
}

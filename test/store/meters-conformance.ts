/** Meters in a store: both clients add to the same ones, and each answer is what the rules of the domain compute. */

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  addProof,
  fadeAll,
  KEPT_MS_A_PROOF,
  type Meter,
  type Meters,
  meterNames,
  metersFrom,
  newMeter,
  wideMeter,
} from '../../src/domain/meters.ts'
import { DEFAULT_POLICY } from '../../src/domain/policy.ts'
import type { Metering } from '../../src/store/store.ts'
import { challengeOn, freshNonce, type StoreMaker, solutionOn, type TestStore } from './harness.ts'

/** An hour by the rules as they are. */
const LEAP_MS = DEFAULT_POLICY.slowMs / 24
const SET_BACK = 399
let next = 0

/** A site of its own, and networks that no other test uses. */
function meteringOf(some: Partial<Metering> = {}): Metering {
  next++
  const wide = `9${next.toString(16).padStart(3, '0')}`
  const shared = meterNames(`site_${String(next).padStart(22, '0')}`, some.isInTime !== undefined)
  return { shared, networks: [`${wide}ownr`, `${wide}wide`], isV4: true, expected: 0, draw: 0, ...some }
}

type Client = Pick<TestStore, 'store' | 'clock'>
/** Of the last proof. */
let draw = 0

/** @param addressKey lies in the networks of the metering, so that it is on their shard */
function proofOn({ store, clock }: Client, asked: Metering, addressKey: string) {
  draw = (draw * 5 + 77) % 256
  const metering = { ...asked, draw }
  const storeEpoch = store.requests.epochOf(addressKey)!
  const spend = { nonce: freshNonce(clock.now), storeEpoch, expiresAtMs: clock.now + 120_000 }
  return solutionOn(store, { addressKey, addressLimit: 64, siteLimit: 64, metering, spend })
}

function close(is: Meter, ought: Meter, what: string): void {
  for (const name of ['sinceMs', 'atMs', 'fast', 'slow'] as const)
    assert.ok(
      Math.abs(is[name] - ought[name]) <= 1e-5 * (1 + Math.abs(ought[name])),
      `${what}, ${name}: ${is[name]} instead of ${ought[name]}`,
    )
}

const listOf = ({ all, site, networks }: Meters): Meter[] => [
  ...[all, site.repeat, site.first, ...networks],
  ...(site.timed === undefined ? [] : [site.timed, site.late!]),
]

/** Runs a test on a store of its own, whose clock may leap. */
function ownedBy(make: StoreMaker) {
  return (test: (own: TestStore) => Promise<void>) => async () => {
    const own = await make()
    try {
      await test(own)
    } finally {
      await own.close()
    }
  }
}

/** The counting alone. */
export function metersConformance(name: string, make: StoreMaker): void {
  const onOwn = ownedBy(make)
  describe(`meters: ${name}`, () => {
    for (const [what, isV4, networks] of [
      ['IPv4', true, ['ownerOf4', 'wideOfV4']],
      ['IPv6', false, ['ownerOf6', 'wideOfV6']],
    ] as const) {
      test(
        `meters of ${what} are those that the domain computes: learning, an attack, nights, a clock that is set`,
        onOwn(async own => {
          const metering = meteringOf({ isV4, networks, isInTime: true })
          const shards = own.shards ?? 1
          const fresh = () => newMeter(own.clock.now)
          let model: Meters | undefined
          for (let step = 0; step < 400; step++) {
            const isAttack = step > 250
            own.clock.now += step === SET_BACK ? -600_000 : isAttack ? 3 : step % 40 === 39 ? LEAP_MS : 1500
            const addressKey = isV4 ? `${networks[0]}0${step % 7}` : `${networks[0]}020${step % 7}`
            const isInTime = [undefined, true, false][step % 3] // above its base, a site does not ask
            const store = step % 2 ? own.store : own.other
            const asked = { ...metering, isInTime }
            const answer = await proofOn({ store, clock: own.clock }, asked, addressKey)
            assert.equal(answer.status, 'admitted', String(step))
            if (answer.status !== 'admitted') return
            if (step === SET_BACK) {
              // How much a meter fades by the step depends on when it was last written. This proof counts eightfold at most.
              for (const meter of listOf(answer.meters!)) {
                assert.ok(meter.sinceMs <= own.clock.now && meter.atMs === own.clock.now)
                assert.ok(meter.fast <= DEFAULT_POLICY.quietProofs * shards + 1, `${meter.fast}`)
              }
              break
            }
            model ??= metersFrom([...asked.shared, ...networks].map(fresh), asked.shared.length)
            fadeAll(model, own.clock.now)
            addProof(model, { isV4, expected: 0, isInTime }, answer.accepted, draw, shards)
            const found = listOf(answer.meters!)
            const [owner, wide] = model.networks
            const read = { ...model, networks: [owner!, wideMeter(owner!, wide!, shards)] }
            for (const [index, meter] of listOf(read).entries())
              close(found[index]!, meter, `step ${step}, meter ${index}`)
          }
          assert.ok(model!.site.repeat.fast > 10, 'there was an attack')
        }),
      )
    }

    test(
      'people of many networks in one wide network count as first-time visitors up to its budget',
      onOwn(async own => {
        const asked = meteringOf()
        const firstAfter = async (proofs: number) => {
          for (let proof = 1; proof < proofs; proof++) await firstProof(proof)
          const answer = await firstProof(0)
          return answer.status === 'admitted' ? answer.meters!.site.first.fast : undefined
        }
        const firstProof = (proof: number) => {
          const owner = `o${proof.toString(16).padStart(3, '0')}ownr`
          return proofOn(own, { ...asked, networks: [owner, asked.networks[1]!] }, `${owner}01`)
        }
        await firstAfter(1)
        own.clock.now += 2 * LEAP_MS // then one proof in all is usual
        if (own.shards !== undefined) return // each sees a part
        const first = await firstAfter(400)
        const { networksV4, networkFastMs } = DEFAULT_POLICY
        const ratio = first! / ((networksV4[1]!.free * networkFastMs) / 60_000)
        assert.ok(ratio > 0.8 && ratio < 1.25, `${ratio}`)
      }),
    )

    test(
      'of what growth excuses only the usual budget is learned, in a network and at a site',
      onOwn(async own => {
        if (own.shards !== undefined) return // each sees a part
        const asked = meteringOf()
        const meters = new Map<string, Meter>()
        let proofs = 0
        const provedBy = async (networks: readonly [string, string], address: number, count: number) => {
          for (let proof = 0; proof < count; proof++) {
            own.clock.now++
            const key = `${networks[0]}${(address < 0 ? proof % 256 : address).toString(16).padStart(2, '0')}`
            const answer = await proofOn(own, { ...asked, networks }, key)
            assert.ok(answer.status === 'admitted', answer.status)
            const list = [...asked.shared, ...networks].map(name => {
              const meter = meters.get(name) ?? newMeter(own.clock.now)
              meters.set(name, meter)
              return meter
            })
            const model = metersFrom(list, asked.shared.length)
            fadeAll(model, own.clock.now)
            addProof(model, { isV4: true, expected: 0 }, answer.accepted, draw)
            const found = listOf(answer.meters!)
            for (const [index, meter] of listOf(model).entries())
              close(found[index]!, meter, `proof ${++proofs}, meter ${index}`)
          }
        }
        const [owner, wide] = asked.networks as [string, string]
        await provedBy([owner, wide], -1, 1000)
        own.clock.now += 2 * LEAP_MS
        for (let person = 0; person < 200; person++) {
          const name = `p${person.toString(16).padStart(3, '0')}`
          await provedBy([`${name}ownr`, `${name}wide`], 0, 1)
        }
        await provedBy([owner, wide], -1, 200)
        // From one address: a repeat source.
        for (let person = 0; person < 20; person++) {
          const name = `r${person.toString(16).padStart(3, '0')}`
          await provedBy([`${name}ownr`, `${name}wide`], 0, 20)
        }
      }),
    )

    test(
      'networks never met before, in an attack: their meters count from the first proof on',
      onOwn(async own => {
        const site = meteringOf()
        const ask = async (network: string, step: number) => {
          own.clock.now += 3
          const networks = [network, `${network.slice(0, 4)}wide`]
          const answer = await proofOn(own, { ...site, networks }, `${network}0${step % 7}`)
          assert.ok(answer.status === 'admitted')
          return listOf(answer.meters!)
        }
        for (let step = 0; step < 60; step++) await ask(site.networks[0]!, step)
        own.clock.now += LEAP_MS // then the site has a usual rate
        for (let step = 0; step < 150; step++) await ask(site.networks[0]!, step)
        for (let network = 0; network < 10; network++) {
          const name = `n${network.toString().padStart(3, '0')}ownr`
          let counted = 0
          // From one address: a repeat source from its third proof on. Every fourth proof is counted, so 61 begin anywhere.
          for (let proof = 0; proof < 61; proof++) {
            const meters = await ask(name, 0)
            for (const { fast, slow } of meters) assert.ok(Number.isFinite(fast + slow), `${fast} ${slow}`)
            const { fast } = meters.at(-2)!
            assert.ok(fast >= counted * 0.99, `${fast} after ${counted}`)
            counted = fast
          }
          assert.ok(counted > 4, `${counted}`)
        }
      }),
    )
  })
}

export function meterTests(under: () => TestStore, make: StoreMaker): void {
  const onOwn = ownedBy(make)
  describe('meters', () => {
    metersConformance('the rules', make)

    test('race: of 40 concurrent proofs by two clients each is counted once, and a challenge sees them all', async () => {
      const { store, other, clock } = under()
      const metering = meteringOf()
      const addressKey = (index: number) =>
        `${metering.networks[0]}${(index % 64).toString(16).padStart(2, '0')}`
      const proofs = Array.from({ length: 40 }, (_, index) =>
        proofOn({ store: index % 2 ? store : other, clock }, metering, addressKey(index)),
      )
      await Promise.all(proofs)
      for (const client of [store, other]) {
        const answer = await challengeOn(client, { addressKey: addressKey(0), metering })
        assert.ok(answer.status === 'admitted')
        assert.equal(answer.meters!.site.first.fast, 40 * (under().shards ?? 1))
      }
    })

    test('a meter counts a solution that spends its nonce, and no challenge, failure or second use', async () => {
      const { store, clock } = under()
      const metering = meteringOf()
      const addressKey = `${metering.networks[0]}01`
      const storeEpoch = store.requests.epochOf(addressKey)!
      const spend = () => ({ nonce: freshNonce(clock.now), storeEpoch, expiresAtMs: clock.now + 120_000 })
      const twice = spend()
      await challengeOn(store, { addressKey, metering })
      await solutionOn(store, { addressKey, metering, failed: true, spend: spend() })
      await solutionOn(store, { addressKey, metering })
      await solutionOn(store, { addressKey, metering, spend: twice })
      await solutionOn(store, { addressKey, metering, spend: twice })
      await solutionOn(store, { addressKey, metering: { ...metering, draw: undefined }, spend: spend() })
      await solutionOn(store, { addressKey, metering, spend: { ...spend(), storeEpoch: 1 } })
      const answer = await challengeOn(store, { addressKey, metering })
      assert.ok(answer.status === 'admitted')
      const { quietProofs, quietProofsSharded } = DEFAULT_POLICY
      const counted = under().shards === undefined ? quietProofs : quietProofsSharded
      assert.equal(answer.meters!.networks[0]!.fast, counted)
    })

    test(
      'the meter of a new network expires after minutes, one with a day of history or of a site does not',
      onOwn(async own => {
        if (own.expires === undefined) return
        const metering = meteringOf()
        const keyOf = (index: number) =>
          `${metering.networks[0]}${(index % 64).toString(16).padStart(2, '0')}`
        // Of a quiet network one proof in quietProofs is counted, for so many.
        while ((await own.expires(metering.networks[0]!)) < 0)
          await proofOn({ store: own.store, clock: own.clock }, metering, keyOf(next++))
        const seconds = await own.expires(metering.networks[0]!)
        const most = (DEFAULT_POLICY.quietProofs * KEPT_MS_A_PROOF) / 1000
        assert.ok(seconds > most - 60 && seconds <= most, `${seconds}`)
        for (let proof = 0; proof < 50; proof++)
          await proofOn({ store: own.store, clock: own.clock }, metering, keyOf(proof))
        assert.ok((await own.expires(metering.networks[0]!)) >= 12_000)
        // Or the quiet nights of a small site would make it a new one, which learns an attack as usual.
        assert.ok((await own.expires(metering.shared[2]!)) > 6 * 86_400)
      }),
    )

    test('readSiteMeters gives the meters of a site', async () => {
      const { store, other, clock } = under()
      const metering = meteringOf({ isInTime: false })
      const siteKey = metering.shared[1]!.split(':')[1]!
      const before = await other.sites.readSiteMeters(siteKey)
      assert.deepEqual([before.repeat.slow, before.first.slow, before.timed?.slow], [0, 0, 0])
      await proofOn({ store, clock }, metering, `${metering.networks[0]}01`)
      const found = await other.sites.readSiteMeters(siteKey)
      for (const meter of [found.first, found.timed!, found.late!])
        assert.ok(meter.slow > 0 && meter.slow <= 1, `${meter.slow}`)
      assert.equal(found.repeat.slow, 0)
    })
  })
}

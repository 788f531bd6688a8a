/**
 * The price of a challenge, and the meters behind it: flows of proofs at steady rates, in virtual time, and what a challenge costs then.
 * A bit is due for each doubling that has begun above what is free: 80 proofs a minute in a /24, 30 in a /48, 240 in a /16 or /32, 120 of a site.
 */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Address, parseAddress } from '../../src/addresses/address.ts'
import { AddressTags, siteMeter } from '../../src/domain/address-tags.ts'
import { Keyring } from '../../src/domain/keyring.ts'
import {
  addProof,
  budgetOf,
  dailyRate,
  fadeAll,
  keptMs,
  METER_BYTES,
  type Meter,
  type Meters,
  metersFrom,
  newMeter,
  readMeter,
  renewFirstProof,
  writeMeter,
} from '../../src/domain/meters.ts'
import {
  type AddressCounts,
  boundsOf,
  checkPrice,
  NO_TRAFFIC,
  priceOf,
  siteFree,
  type Traffic,
  trafficOf,
} from '../../src/domain/price.ts'
import { networkPricing, PRICING } from '../../src/domain/pricing.ts'

const address = (text: string) => parseAddress(text)!
const [MINUTE_MS, HOUR_MS, DAY_MS] = [60_000, 3_600_000, 86_400_000]
const BOUNDS = { base: 18, min: 16, max: 28 }
const COUNTS = { challenges: 0, limitPerMinute: 30, accepted: 0 }

/** Whom proofs come from: the address of the sender of each. */
const FLOWS = {
  /** Each person is in another network. */
  people: (index: number) => address(`${1 + (index % 9)}.${(index * 7) & 255}.${(index * 13) & 255}.1`),
  carrier: (index: number) => address(`203.0.113.${index % 250}`),
  rented: (index: number) => address(`198.51.100.${index % 250}`),
  ownerOf48: (index: number) => address(`2001:db8:1:${(index % 60_000).toString(16)}::1`),
  ownerOf32: (index: number) => address(`2001:db8:${(index % 60_000).toString(16)}::1`),
  ownerOf16: (index: number) => address(`198.51.${index % 250}.${(index >> 8) % 250}`),
} satisfies Record<string, (index: number) => Address>

const TAGS = new AddressTags(new Keyring(['a secret of the test']).signing)

/** One site and all who come to it: keeps meters as a store does. */
class Town {
  nowMs = DAY_MS
  readonly #meters = new Map<string, Meter>()
  /** The proofs of each flow that are due, with the fraction that is left for the next step. */
  readonly #due = new Map<string, number>()
  #proofs = 0

  /** @param isKept false reads the meters as a store does for a challenge, and writes nothing */
  meters(from: Address, isKept = false): Meters {
    const meter = (name: string) => {
      const known = this.#meters.get(name) ?? newMeter(this.nowMs)
      if (!isKept) return { ...known }
      this.#meters.set(name, known)
      return known
    }
    const networks = TAGS.networkMeters(from, TAGS.keyOf(from, 64), 'sha256')
    const names = [...TAGS.firstProofNames, siteMeter('site_0000000000000000000000'), ...networks]
    const meters = metersFrom(names.map(meter), this.nowMs)
    fadeAll(meters, this.nowMs, PRICING)
    return meters
  }

  /** @param accepted earlier proofs of the address. @param proofs -1 takes the proof back */
  add(from: Address, accepted = 0, proofs: 1 | -1 = 1): void {
    const { owner, wide } = networkPricing(from, PRICING).free
    const meters = this.meters(from, true)
    for (const name of TAGS.firstProofNames) renewFirstProof(this.#meters.get(name)!, this.nowMs)
    addProof(meters, [siteFree(0, PRICING), owner, wide], accepted, proofs, PRICING)
  }

  /** @param flows proofs a minute. @param accepted earlier proofs of each address: from two on, it is a returning one */
  run(ms: number, flows: Partial<Record<keyof typeof FLOWS, number>>, accepted = 0): this {
    const stepMs = ms > HOUR_MS ? 10_000 : 1000
    for (const endMs = this.nowMs + ms; this.nowMs < endMs; this.nowMs += stepMs) {
      for (const [name, perMinute] of Object.entries(flows)) {
        let due = (this.#due.get(name) ?? 0) + (perMinute * stepMs) / MINUTE_MS
        for (; due >= 1; due--) this.add(FLOWS[name as keyof typeof FLOWS](this.#proofs++), accepted)
        this.#due.set(name, due)
      }
    }
    return this
  }

  traffic(from: Address, expected = 0, isKnown = false): Traffic {
    return trafficOf(this.meters(from), networkPricing(from, PRICING), expected, isKnown, PRICING)
  }

  /** What a new address pays in this network. */
  price(from: Address, some: Partial<AddressCounts> = {}) {
    return priceOf({ ...COUNTS, ...some }, this.traffic(from), PRICING)
  }
}

const [CARRIER, RENTED] = [address('203.0.113.251'), address('198.51.100.251')]
const [OWNER_OF_48, STRANGER] = [address('2001:db8:1:ffff::1'), address('192.0.2.1')]
/** Two quiet hours: a store older than one hour no longer learns from all proofs, only from those up to half a budget. */
const quiet = (people = 5) => new Town().run(2 * HOUR_MS, { people })

test('an address pays nothing for a quarter of its limit, then up to four bits', () => {
  const bits = [0, 7, 8, 13, 19, 25, 29, 30].map(challenges => {
    return priceOf({ ...COUNTS, challenges }, NO_TRAFFIC, PRICING).addressBits
  })
  assert.deepEqual(bits, [0, 0, 1, 1, 3, 4, 4, 4])
})

test('a network without history costs nothing up to what is free, then a bit for each doubling, at most six', () => {
  for (const [rented, bits] of [
    [60, 0], // of 80 that are free
    [130, 1],
    [300, 2],
    [600, 3],
    [12_000, 6], // without the limit eight, as the eighth doubling, from 10,240 on, has begun
  ] as const) {
    const town = quiet().run(6 * MINUTE_MS, { people: 5, rented })
    assert.equal(town.price(RENTED).networkBits, bits, `${rented} a minute`)
    assert.equal(town.price(STRANGER).costliest, undefined, 'another network')
    town.nowMs += 6 * MINUTE_MS
    assert.equal(town.price(RENTED).networkBits, 0, 'minutes later')
  }
})

test('a /48 pays, a whole /32 and a whole /16 of IPv4 too, though each network in these brings little', () => {
  for (const [flow, perMinute, inside, paid] of [
    ['ownerOf48', 150, OWNER_OF_48, [3, 48]],
    ['ownerOf32', 3000, address('2001:db8:ffff::1'), [4, 32]],
    ['ownerOf16', 3000, address('198.51.251.1'), [4, 16]],
  ] as const) {
    const town = quiet().run(6 * MINUTE_MS, { people: 5, [flow]: perMinute })
    const { networkBits, costliest } = town.price(inside) // a new address in it
    assert.deepEqual([networkBits, costliest?.prefixBits], paid, flow)
  }
})

test('a network may bring four times what is usual there', () => {
  const bitsAt = (carrier: number) =>
    new Town()
      .run(3 * HOUR_MS, { people: 5, carrier: 100 })
      .run(6 * MINUTE_MS, { people: 5, carrier })
      .price(CARRIER).networkBits
  assert.deepEqual([bitsAt(380), bitsAt(700)], [0, 1])
})

test('an attack becomes usual slowly: after three hours it costs at most one bit less', () => {
  const town = quiet().run(6 * MINUTE_MS, { people: 5, ownerOf48: 600 })
  assert.equal(town.price(OWNER_OF_48).networkBits, 5)
  town.run(3 * HOUR_MS, { people: 5, ownerOf48: 600 })
  assert.ok(town.price(OWNER_OF_48).networkBits >= 4)
})

test('a network that always sends what just costs nothing makes its budget grow e-fold a day, not more', () => {
  const town = quiet()
  town.nowMs += 7 * DAY_MS
  const budget = () => {
    const [owner] = town.traffic(RENTED).networkRates
    return budgetOf(owner!, owner!.free, PRICING)
  }
  const spendBudgetForADay = () => {
    for (let minute = 0; minute < 1440; minute += 10)
      town.run(10 * MINUTE_MS, { people: 5, rented: budget() })
  }
  spendBudgetForADay()
  const before = budget()
  spendBudgetForADay()
  const growth = budget() / before
  assert.ok(growth > 1.5 && growth < 3, `${growth}`)
})

test('usual rates learn from proofs up to half a budget, and above it from that half; in a store younger than an hour from all', () => {
  /** Whether the site's meter counts, then how much of a proof each meter learns: the site's, the owner's, the wide network's. */
  const learned = (ages: Pick<Meters, 'ageMs' | 'namesAgeMs'>, accepted: number, proofs: 1 | -1) => {
    // 1000 are the recent proofs before this one, which is one of the meter's when it is taken back.
    const meter = (): Meter => ({ atMs: 0, recent: proofs === 1 ? 1000 : 1001, usual: 10 })
    const [site, ...networks] = [meter(), meter(), meter()] as const
    const meters = { ...ages, site, networks }
    const isSite = addProof(meters, [600, 400, 1000], accepted, proofs, PRICING)
    return [isSite, ...[site, ...networks].map(({ usual }) => ((usual - 10) * proofs).toFixed(6))].join(' ')
  }
  // The site's meter forgets in 20 s, so 1000 are a rate of 3000 a minute: half the budget of 600 is a tenth of it. Those of
  // networks forget in a minute: half the budgets of 400 and 1000 are a fifth and a half of 1000 a minute.
  for (const proofs of [1, -1] as const) {
    const old = { ageMs: HOUR_MS, namesAgeMs: HOUR_MS }
    assert.equal(learned(old, 2, proofs), 'true 0.100000 0.200000 0.500000')
    const renamed = { ...old, namesAgeMs: HOUR_MS - 1 } // networks, by a new first secret
    assert.equal(learned(renamed, 2, proofs), 'true 0.100000 1.000000 1.000000')
    const young = { ageMs: HOUR_MS - 1, namesAgeMs: HOUR_MS - 1 }
    assert.equal(learned(young, 2, proofs), 'true 1.000000 1.000000 1.000000')
    assert.equal(learned(young, 1, proofs), 'false 0.000000 1.000000 1.000000')
  }
})

test('a site under attack: addresses that return pay up to four bits, others none, and two minutes later nobody', () => {
  const town = quiet().run(3 * MINUTE_MS, { people: 1200 }, 2)
  const { siteBits, isReturning } = town.price(STRANGER, { accepted: 2 })
  assert.deepEqual([siteBits, isReturning], [4, true])
  assert.equal(town.price(STRANGER, { accepted: 1 }).siteBits, 0)
  town.nowMs += 2 * MINUTE_MS
  assert.equal(town.price(STRANGER, { accepted: 2 }).siteBits, 0)
})

test('what an operator expects of a site is usual, however quiet the days before were, and no more than that', () => {
  const isAttacked = (perMinute: number, expected: number) => {
    const town = quiet().run(5 * MINUTE_MS, { people: perMinute }, 2)
    return priceOf({ ...COUNTS, accepted: 2 }, town.traffic(STRANGER, expected), PRICING).siteBits > 0
  }
  // Of 120 that are expected, four times as many are free: 480.
  assert.deepEqual([isAttacked(300, 0), isAttacked(300, 120), isAttacked(700, 120)], [true, false, true])
})

test('of the bits of network and site the larger count, beside those of the address; a known network pays one of the site', () => {
  const town = quiet().run(6 * MINUTE_MS, { people: 1200, rented: 300 }, 2)
  const { addressBits, networkBits, siteBits } = town.price(RENTED, { challenges: 30, accepted: 2 })
  assert.deepEqual([addressBits, networkBits, siteBits], [4, 2, 2], 'the site’s four hold the network’s two')
  const siteAlone = { ...town.traffic(RENTED, 0, true), networkRates: [] }
  const known = priceOf({ ...COUNTS, accepted: 2 }, siteAlone, PRICING)
  assert.deepEqual([known.networkBits, known.siteBits], [0, 1])
})

test('a solution is refused when its challenge is more than one bit cheaper than one of now', () => {
  const town = quiet().run(6 * MINUTE_MS, { ownerOf48: 150 })
  const isRefused = (bits: number, bounds = BOUNDS) =>
    checkPrice(bits, bounds, 0, town.traffic(OWNER_OF_48), PRICING).isUnderpriced
  assert.deepEqual([isRefused(19), isRefused(20)], [true, false], 'three above the base of 18, less one')
  assert.deepEqual([isRefused(18, { ...BOUNDS, max: 19 })], [false], 'the bounds of the site hold here too')
  const afterRaise = checkPrice(16, { ...BOUNDS, base: 20 }, 0, quiet().traffic(STRANGER), PRICING)
  assert.ok(afterRaise.isUnderpriced, 'the base was raised after the challenge')
})

test('isCapped: the maximum of a site is below what network or site ask for', () => {
  const isCapped = (max: number, accepted: number, traffic: Traffic) =>
    checkPrice(18, { ...BOUNDS, max }, accepted, traffic, PRICING).isCapped
  const crowded = quiet()
    .run(6 * MINUTE_MS, { ownerOf48: 150 })
    .traffic(OWNER_OF_48)
  const ofNetwork = [isCapped(20, 0, crowded), isCapped(21, 0, crowded)]
  assert.deepEqual(ofNetwork, [true, false], '18 and three of the network')
  const attacked = quiet()
    .run(3 * MINUTE_MS, { people: 1200 }, 2)
    .traffic(STRANGER)
  const ofSite = [isCapped(21, 2, attacked), isCapped(22, 2, attacked)]
  assert.deepEqual(ofSite, [true, false], '18 and four of the site')
})

test('a raise adds to the base, up to the maximum', () => {
  assert.deepEqual(boundsOf(BOUNDS, 0), BOUNDS)
  assert.deepEqual(boundsOf(BOUNDS, 3), { ...BOUNDS, base: 21, raise: 3 })
  assert.deepEqual(boundsOf({ ...BOUNDS, max: 22 }, 8), { ...BOUNDS, max: 22, base: 22, raise: 4 })
})

test('a stock of cheap proofs sent at once: all beyond twice what is free are taken back, so neighbours pay one bit', () => {
  const town = quiet()
  let passed = 0
  for (let proof = 0; proof < 250; proof++) {
    const from = FLOWS.ownerOf48(proof)
    town.add(from)
    if (checkPrice(18, BOUNDS, 0, town.traffic(from), PRICING).isUnderpriced) town.add(from, 0, -1)
    else passed++
  }
  assert.ok(passed >= 60 && passed < 70, `${passed}`)
  assert.equal(town.price(OWNER_OF_48).networkBits, 1)
  town.nowMs += MINUTE_MS
  assert.equal(town.price(OWNER_OF_48).networkBits, 0)
})

test('a proof that is taken back leaves nothing as usual, also where the meter stands at its budget', () => {
  for (const rented of [0, 60, 79, 80, 200]) {
    const town = quiet().run(6 * MINUTE_MS, { people: 5, rented })
    const usual = () => town.meters(RENTED).networks[0]!.usual
    const before = usual()
    for (let proof = 0; proof < 1000; proof++) {
      town.add(RENTED)
      town.nowMs += 5 // it fades before it is taken back
      town.add(RENTED, 0, -1)
    }
    assert.ok(Math.abs(usual() - before) < 0.5, `${rented}: ${before} -> ${usual()}`)
  }
})

test('if the clock is set back or ahead, meters go on fading, and the age of a store is never below zero', () => {
  for (const stepMs of [-HOUR_MS, DAY_MS]) {
    const town = quiet().run(6 * MINUTE_MS, { people: 5, ownerOf48: 300 })
    town.nowMs += stepMs
    town.run(6 * MINUTE_MS, { people: 5 })
    assert.equal(town.price(OWNER_OF_48).networkBits, 0)
    assert.ok(town.meters(OWNER_OF_48).ageMs >= 0)
    town.nowMs -= stepMs
    assert.ok(town.run(6 * MINUTE_MS, { ownerOf48: 300 }).price(OWNER_OF_48).networkBits >= 3, `${stepMs}`)
  }
  const firstProof = { ...newMeter(0), usual: HOUR_MS }
  renewFirstProof(firstProof, HOUR_MS - 1)
  assert.equal(firstProof.usual, HOUR_MS - 1, 'a clock that was ahead makes no store old')
})

test('a meter is kept for five minutes per proof that it has counted, and a week at most', () => {
  const kept = [1, 12, 1e6].map(usual => keptMs({ ...newMeter(0), usual }))
  assert.deepEqual(kept, [5 * MINUTE_MS, HOUR_MS, 7 * DAY_MS])
})

test('the usual rate is over a day, and fades e-fold in a day without a proof; without meters there is none', () => {
  const meter = { ...newMeter(DAY_MS), usual: 2880 } // two proofs a minute for a day
  const rateAfter = (ms: number) => dailyRate([meter, meter], meter.atMs + ms)!.toFixed(2) // of two shards
  assert.equal(rateAfter(0), '4.00')
  assert.equal(rateAfter(DAY_MS), (4 / Math.E).toFixed(2))
  assert.equal(rateAfter(-DAY_MS), (4 / Math.E).toFixed(2), 'a clock that was set back')
  assert.equal(dailyRate([], 0), undefined)
})

test('a meter is read as it was written; zeros are a new one', () => {
  const bytes = Buffer.alloc(METER_BYTES + 1)
  const meter = { atMs: 1_795_000_123_456, recent: 12.5, usual: 1e9 + 0.5 }
  writeMeter(bytes, 1, meter)
  assert.deepEqual(readMeter(bytes, 1, 0), meter)
  assert.deepEqual(readMeter(Buffer.alloc(METER_BYTES), 0, 1234), newMeter(1234))
})

/** Meters: what networks and sites usually bring, and what bringing more costs. Time is virtual, and each flow is steady. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Address, isOperatorsOwn, isV4, parseAddress } from '../../src/domain/address.ts'
import { AddressTags } from '../../src/domain/address-tags.ts'
import { type AddressCounts, climbOf, isUnderpriced } from '../../src/domain/difficulty.ts'
import { Keyring } from '../../src/domain/keyring.ts'
import {
  addProof,
  fadeAll,
  growthOf,
  keptMs,
  METER_BYTES,
  type Meter,
  type Meters,
  meterNames,
  metersFrom,
  networkBudget,
  newMeter,
  readMeter,
  siteRates,
  trafficOf,
  wideMeter,
  writeMeter,
} from '../../src/domain/meters.ts'
import { DEFAULT_POLICY } from '../../src/domain/policy.ts'
import { SITE } from '../store/harness.ts'

const address = (text: string) => parseAddress(text)!
const [MINUTE_MS, HOUR_MS, DAY_MS] = [60_000, 3_600_000, 86_400_000]
const BOUNDS = { base: 18, min: 16, max: 28 }

const FLOWS = {
  /** Each of another network. */
  people: (index: number) => address(`${1 + (index % 9)}.${(index * 7) & 255}.${(index * 13) & 255}.1`),
  carrier: (index: number) => address(`203.0.113.${index % 250}`),
  rented: (index: number) => address(`198.51.100.${index % 250}`),
  ownerOf48: (index: number) => address(`2001:db8:1:${(index % 60_000).toString(16)}::1`),
  ownerOf32: (index: number) => address(`2001:db8:${(index % 60_000).toString(16)}::1`),
  ownerOf16: (index: number) => address(`198.51.${index % 250}.${(index >> 8) % 250}`),
} satisfies Record<string, (index: number) => Address>

const TAGS = new AddressTags(new Keyring(['a secret of the test']).signing)

type Flows = Partial<Record<keyof typeof FLOWS, number>>

/** A store of meters, with one site. */
class Town {
  nowMs: number
  readonly #meters = new Map<string, Meter>()
  readonly #due = new Map<string, number>()
  #proofs = 0
  #seed = 1

  constructor(nowMs = DAY_MS) {
    this.nowMs = nowMs
  }

  at(from: Address): Meters {
    const meter = (name: string) => {
      const known = this.#meters.get(name) ?? newMeter(this.nowMs)
      this.#meters.set(name, known)
      return known
    }
    const shared = meterNames(SITE, false)
    const networks = isOperatorsOwn(from) ? [] : TAGS.networksOf(TAGS.keyOf(from, 64), from)
    const meters = metersFrom([...shared, ...networks].map(meter), shared.length)
    fadeAll(meters, this.nowMs)
    return meters
  }

  /** @param flows proofs a minute of each; @param accepted of each address before */
  run(ms: number, flows: Flows, accepted = 0): this {
    const stepMs = ms > HOUR_MS ? 10_000 : 1000
    for (const endMs = this.nowMs + ms; this.nowMs < endMs; this.nowMs += stepMs) {
      for (const [name, perMinute] of Object.entries(flows)) {
        let due = (this.#due.get(name) ?? 0) + (perMinute * stepMs) / MINUTE_MS
        for (; due >= 1; due--) {
          const from = FLOWS[name as keyof typeof FLOWS](this.#proofs++)
          addProof(this.at(from), { isV4: isV4(from), expected: 0 }, accepted, this.#draw())
        }
        this.#due.set(name, due)
      }
    }
    return this
  }

  traffic(text: string, expected = 0) {
    const from = address(text)
    return trafficOf(this.at(from), { isV4: isV4(from), expected }, false)
  }

  /** The same sequence in each town (Lehmer). */
  #draw(): number {
    this.#seed = (this.#seed * 48_271) % 0x7fffffff
    return this.#seed >> 8
  }

  /** What a new address pays there. */
  climb(text: string, some: Partial<AddressCounts> = {}) {
    return climbOf({ challenges: 0, limit: 30, failures: 0, accepted: 0, ...some }, this.traffic(text))
  }
}

const [CARRIER, RENTED, OWNER_OF_48] = ['203.0.113.251', '198.51.100.251', '2001:db8:1:ffff::1']
/** Two hours of a quiet site. */
const quiet = (people = 5) => new Town().run(2 * HOUR_MS, { people })

test('a network without history costs nothing up to what is free, then a bit for each doubling', () => {
  for (const [rented, bits] of [
    [60, 0],
    [130, 1],
    [300, 2],
    [600, 3],
  ] as const) {
    const town = quiet().run(6 * MINUTE_MS, { people: 5, rented })
    assert.equal(town.climb(RENTED).networks, bits, `${rented} a minute`)
    assert.equal(town.climb('192.0.2.1').networks, 0, 'another network')
    town.nowMs += 5 * MINUTE_MS
    assert.equal(town.climb(RENTED).networks, 0, 'minutes later')
  }
})

test('a /48 of IPv6 costs three bits for each doubling', () => {
  const town = quiet().run(6 * MINUTE_MS, { ownerOf48: 150 })
  const { networks, network } = town.climb(OWNER_OF_48)
  assert.deepEqual([networks, network?.prefixBits], [7, 48])
})

test('a whole /32 of IPv6 pays, and a whole /16 of IPv4, though each network in it brings little', () => {
  for (const [flow, inside, prefixBits] of [
    ['ownerOf32', '2001:db8:ffff::1', 32],
    ['ownerOf16', '198.51.251.1', 16],
  ] as const) {
    const town = quiet().run(6 * MINUTE_MS, { people: 5, [flow]: 3000 })
    const { networks, network } = town.climb(inside)
    assert.deepEqual([networks, network?.prefixBits], [4, prefixBits], flow)
  }
})

test('popularity costs nothing: the same mix at ten and at forty times the rate has the same bits', () => {
  for (const times of [1, 10, 40]) {
    const town = new Town().run(2 * HOUR_MS, { people: 60, carrier: 40 })
    town.run(6 * MINUTE_MS, { people: 60 * times, carrier: 40 * times })
    assert.deepEqual([town.climb(CARRIER).networks, town.climb('192.0.2.1').networks], [0, 0])
  }
})

test('visits that only move to another network are no flood, and cost three bits at most', () => {
  const town = new Town().run(2 * HOUR_MS, { people: 100, carrier: 1000 })
  assert.equal(town.run(6 * MINUTE_MS, { people: 100, rented: 1000 }).climb(RENTED).networks, 3)
})

test('what a neighbour does costs a network with a day of history one bit, networks and site together', () => {
  const town = new Town().run(DAY_MS, { people: 20, carrier: 4 })
  const { networks, site, isRepeat } = town.run(6 * MINUTE_MS, { people: 20, carrier: 450 }).climb(CARRIER)
  assert.deepEqual([networks, site, isRepeat], [1, 0, true])
})

test('an attack does not become usual: hours later it costs as much', () => {
  const town = quiet().run(6 * MINUTE_MS, { people: 5, ownerOf48: 600 })
  const { networks } = town.climb(OWNER_OF_48)
  assert.ok(networks >= 8, `${networks}`)
  town.run(3 * HOUR_MS, { people: 5, ownerOf48: 600 })
  assert.ok(town.climb(OWNER_OF_48).networks >= networks - 1)
})

test('a network that came every day excuses no flood of its own', () => {
  for (const [flow, inside, level] of [
    ['ownerOf48', OWNER_OF_48, 0],
    ['ownerOf32', '2001:db8:ffff::1', 1],
    ['ownerOf16', '198.51.251.1', 1],
  ] as const) {
    const town = new Town().run(DAY_MS, { people: 5, [flow]: 10 })
    const { networks } = town.run(6 * MINUTE_MS, { people: 5, [flow]: 1900 }).climb(inside)
    assert.ok(networks >= 2, `${flow}: ${networks}`) // as its history allows
    const { recent, usual } = town.traffic(inside).networks[level]!
    assert.ok(recent > 1000 && usual < 13, `${flow}: ${recent} ${usual}`)
  }
})

test('a site tolerates more when more people come for the first time, from many networks, not from one', () => {
  const firstAfter = (flows: Flows, accepted = 0) =>
    quiet()
      .run(3 * MINUTE_MS, flows, accepted)
      .traffic('192.0.2.1').siteFirst.recent
  assert.ok(firstAfter({ people: 600 }) > 500)
  assert.ok(firstAfter({ people: 600 }, 1) < 5, 'a second time')
  assert.ok(firstAfter({ people: 5, carrier: 600 }) < 90)
})

test('a site under attack: repeat sources pay up to four bits, all others one, and minutes later nobody', () => {
  const town = quiet().run(3 * MINUTE_MS, { people: 1200 }, 2)
  assert.equal(town.climb('192.0.2.1', { accepted: 2 }).site, 4)
  assert.deepEqual([town.climb('192.0.2.1').site, town.climb('192.0.2.1').isRepeat], [1, false])
  town.nowMs += 2 * MINUTE_MS
  assert.equal(town.climb('192.0.2.1', { accepted: 2 }).site, 0)
})

test('the networks of an attack learn nothing, also within their budgets', () => {
  const town = quiet().run(20 * MINUTE_MS, { people: 5, carrier: 70, rented: 70, ownerOf16: 200 }, 2)
  for (const network of [CARRIER, RENTED]) {
    const { usual } = town.traffic(network).networks[0]!
    assert.ok(usual < 2, `${usual}`)
  }
})

test('what an operator expects of a site is usual, however quiet the days before were, and no more than that', () => {
  const isAttacked = (perMinute: number, expected: number) => {
    const town = quiet().run(5 * MINUTE_MS, { people: perMinute }, 2)
    const counts = { challenges: 0, limit: 30, failures: 0, accepted: 2 }
    return climbOf(counts, town.traffic('192.0.2.1', expected)).site > 0
  }
  assert.deepEqual([isAttacked(300, 0), isAttacked(300, 120), isAttacked(700, 120)], [true, false, true])
})

test('a solution is refused when its challenge is more than three bits cheaper than one of now', () => {
  const town = quiet().run(6 * MINUTE_MS, { ownerOf48: 150 })
  const isRefused = (bits: number, bounds = BOUNDS) =>
    isUnderpriced(bits, bounds, 0, town.traffic(OWNER_OF_48))
  assert.equal(town.climb(OWNER_OF_48).networks, 7)
  assert.deepEqual([isRefused(21), isRefused(22)], [true, false])
  assert.equal(isRefused(18, { ...BOUNDS, max: 21 }), false, 'the bounds of the site hold here too')
  assert.equal(isUnderpriced(16, { ...BOUNDS, base: 20 }, 0, quiet().traffic('192.0.2.1')), true, 'a raise')
})

test('of the four bits of a site under attack, a stock of challenges saves one', () => {
  const traffic = quiet()
    .run(6 * MINUTE_MS, { people: 3000 }, 2)
    .traffic('192.0.2.1')
  const isRefused = (bits: number, accepted: number) => isUnderpriced(bits, BOUNDS, accepted, traffic)
  assert.deepEqual([isRefused(20, 2), isRefused(21, 2)], [true, false])
  assert.equal(isRefused(18, 0), false, 'a person whose challenge is from before the attack')
})

test('if the clock is set back or ahead, meters go on fading, and no first proof lies in the future', () => {
  for (const stepMs of [-HOUR_MS, DAY_MS]) {
    const town = quiet().run(6 * MINUTE_MS, { people: 5, ownerOf48: 300 })
    town.nowMs += stepMs
    town.run(6 * MINUTE_MS, { people: 5 })
    assert.equal(town.climb(OWNER_OF_48).networks, 0)
    assertNoneInFuture(town)
    town.nowMs -= stepMs
    assertNoneInFuture(town.run(MINUTE_MS, { ownerOf48: 300 }))
    assert.ok(town.run(6 * MINUTE_MS, { ownerOf48: 300 }).climb(OWNER_OF_48).networks > 3, `${stepMs}`)
  }
})

function assertNoneInFuture(town: Town): void {
  const { all, networks } = town.at(address(OWNER_OF_48))
  for (const meter of [all, ...networks]) assert.ok(meter.sinceMs <= town.nowMs && meter.atMs <= town.nowMs)
}

test('a meter is kept for minutes when it knows one proof, and for a week when it knows a day', () => {
  const meter = { ...newMeter(0), slow: 1 }
  assert.equal(keptMs(meter), 5 * MINUTE_MS)
  assert.equal(keptMs({ ...meter, slow: 12 }), HOUR_MS)
  assert.equal(keptMs({ ...meter, slow: 1e6 }), 7 * DAY_MS)
  assert.equal(keptMs(meter, true), 7 * DAY_MS, 'of a site or all traffic: known again after a quiet night')
})

test('a meter is read as it was written; zeros are a new one', () => {
  const bytes = Buffer.alloc(METER_BYTES + 1)
  const times = { sinceMs: 1_795_000_000_000, atMs: 1_795_000_123_456 }
  const meter = { ...times, fast: 12.5, slow: 1e9 + 0.5, isChanged: false }
  writeMeter(bytes, 1, meter)
  assert.deepEqual(readMeter(bytes, 1, 0), meter)
  const zeros = { sinceMs: 1000, atMs: 1234, fast: 0, slow: 0, isChanged: false }
  assert.deepEqual(readMeter(Buffer.alloc(METER_BYTES), 0, 1234), zeros)
})

test('first-time visitors of one network do not make the flood of another usual', () => {
  const town = new Town().run(DAY_MS, { people: 5 })
  const freeNow = () => {
    const { networks, siteFirst } = town.traffic('198.51.100.1')
    return networkBudget(networks[1]!, 240, growthOf(siteFirst, DEFAULT_POLICY), DEFAULT_POLICY)
  }
  for (let minute = 0; minute < 180; minute++)
    town.run(MINUTE_MS, { people: 5, ownerOf32: 230, ownerOf16: Math.round(freeNow() * 0.9) })
  const free = freeNow()
  assert.ok(free > 240 && free < 1600, `${free}`)
})

test('a quiet network counts one proof in eight, as eight; a busy one counts each', () => {
  const town = quiet()
  const fastAfter = (draws: readonly number[]) => {
    for (const draw of draws) addProof(town.at(address(CARRIER)), { isV4: true, expected: 0 }, 0, draw)
    return town.at(address(CARRIER)).networks[0]!.fast
  }
  assert.deepEqual([fastAfter([1, 2, 4]), fastAfter([8]), fastAfter([9, 12])], [0, 8, 8])
  assert.deepEqual([fastAfter([16, 24]), fastAfter([1, 2, 3])], [16 + 1, 17 + 3])
})

test('on a Cluster a shard counts its proofs of shared networks for all shards', () => {
  const town = new Town()
  const meters = town.at(address(CARRIER))
  addProof(meters, { isV4: true, expected: 0 }, 0, 0, 16)
  const [owner, wide] = meters.networks
  assert.deepEqual([owner!.fast, wide!.fast, meters.all.fast, meters.site.first.fast], [4, 64, 16, 16])
  assert.equal(siteRates(meters.site).first.recent, 16)
  assert.equal(wideMeter(owner!, wide!, 16).fast, 4, 'but its own proofs once: no other shard has them')
  const besides = { ...wide!, fast: wide!.fast + 10 * 16 }
  assert.equal(wideMeter(owner!, besides, 16).fast, 4 + 10 * 16)
  assert.equal(wideMeter({ ...owner!, fast: 40 }, wide!, 16).fast, 4, 'at least one shard of it')
})

test("private networks are the operator's own, and are not counted", () => {
  const town = quiet()
  const before = town.traffic('192.0.2.1').all.usual
  for (let proof = 0; proof < 5000; proof++)
    addProof(town.at(address('10.0.0.1')), { isV4: true, expected: 0 }, 0, proof)
  assert.deepEqual(town.climb('10.0.0.1').networks, 0)
  assert.equal(town.traffic('192.0.2.1').all.usual, before)
})

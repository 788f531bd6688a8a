/** Networks around addresses: budgets learned from what they usually bring, and what bringing more costs. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Address, parseAddress } from '../../src/domain/address.ts'
import { NetworkMemory, reportNetworks } from '../../src/domain/networks.ts'
import { NEW_SOURCE, SourceWatch } from '../../src/domain/sources.ts'

const address = (text: string) => parseAddress(text)!
const [SECOND_MS, MINUTE_MS, HOUR_MS, DAY_MS] = [1000, 60_000, 3_600_000, 86_400_000]

const FLOWS = {
  /** Each of another network. */
  people: (index: number) => address(`${1 + (index % 99)}.${(index >> 6) & 255}.${index & 255}.1`),
  carrier: (index: number) => address(`203.0.113.${index % 250}`),
  rented: (index: number) => address(`198.51.100.${index % 250}`),
  ownerOf48: (index: number) => address(`2001:db8:1:${(index % 60_000).toString(16)}::1`),
  ownNetwork: (index: number) => address(`10.0.0.${index % 250}`),
} satisfies Record<string, (index: number) => Address>

/** Workers that exchange their counts, as the service's do. */
class Fleet {
  nowMs = DAY_MS
  readonly workers: readonly SourceWatch[]
  readonly #table = new NetworkMemory()
  #turn = 0

  constructor(workers = 1) {
    this.workers = Array.from({ length: workers }, () => new SourceWatch())
  }

  /**
   * @param flows proofs a minute of each
   * @param stepMs between two exchanges
   */
  run(ms: number, flows: Partial<Record<keyof typeof FLOWS, number>>, stepMs = SECOND_MS): this {
    const due = new Map<string, number>()
    for (const endMs = this.nowMs + ms; this.nowMs < endMs; this.nowMs += stepMs) {
      for (const [name, perMinute] of Object.entries(flows)) {
        let rest = (due.get(name) ?? 0) + (perMinute * stepMs) / MINUTE_MS
        for (; rest >= 1; rest--) {
          const turn = this.#turn++
          const from = FLOWS[name as keyof typeof FLOWS](turn)
          this.workers[turn % this.workers.length]!.accepted(from)
        }
        due.set(name, rest)
      }
      for (const worker of this.workers) {
        const { proofs, reports, take } = worker.report(1000)
        take(reportNetworks(this.#table, this.nowMs, proofs, reports), this.nowMs)
      }
    }
    return this
  }

  /** What a new address pays there. */
  of(text: string, worker = 0) {
    return this.workers[worker]!.of(address(text), this.nowMs)
  }
}

test('if the clock is set back by an hour, the proofs of networks go on fading', () => {
  const table = new NetworkMemory()
  const report = (nowMs: number, proofs: number) =>
    reportNetworks(table, nowMs, proofs, [{ tag: 7, free: 80, proofs, peaceful: proofs }])
  for (const [nowMs, proofs] of [
    [HOUR_MS, 1000],
    [0, 0],
  ] as const)
    report(nowMs, proofs)
  const { all, networks } = report(10 * MINUTE_MS, 0)
  assert.ok(all.recent < 1 && networks[0]!.recent < 1, `${all.recent} ${networks[0]!.recent}`)
})

test('a flood of networks makes a worker forget others bit by bit, and never those that it meets', () => {
  const fleet = new Fleet().run(10 * MINUTE_MS, { carrier: 600 })
  const [watch] = fleet.workers as [SourceWatch]
  const remembered = () =>
    watch.of(address(CARRIER), fleet.nowMs).view.levels.filter(({ usual }) => usual > 0)
  for (let network = 0; network < 200_000; network++) {
    const [high, middle, low] = [network >> 16, network >> 8, network].map(bits => (bits & 255).toString(16))
    watch.accepted(address(`2001:db${high!.padStart(2, '0')}:${middle}${low!.padStart(2, '0')}::1`))
    if (network % 1000 === 0) {
      watch.accepted(FLOWS.carrier(network))
      assert.equal(remembered().length, 2, `after ${network} networks`)
    }
  }
})

const [CARRIER, RENTED, OWNER_OF_48] = ['203.0.113.251', '198.51.100.251', '2001:db8:1:ffff::1']

test('a network without history costs nothing up to what is free, then a bit for each doubling', () => {
  for (const [rented, bits] of [
    [60, 0],
    [130, 1],
    [300, 2],
    [600, 3],
  ] as const) {
    // biome-ignore format: pairs
    const fleet = new Fleet().run(2 * HOUR_MS, { people: 5 }, MINUTE_MS)
    fleet.run(6 * MINUTE_MS, { people: 5, rented })
    assert.equal(fleet.of(RENTED).networkBits, bits, `${rented} a minute`)
    assert.equal(fleet.of('192.0.2.1').networkBits, 0, 'another network')
    fleet.nowMs += 5 * MINUTE_MS // and no exchange
    assert.equal(fleet.of(RENTED).networkBits, 0, 'minutes later')
  }
})

test('a /48 of IPv6 costs three bits for each doubling', () => {
  const fleet = new Fleet().run(2 * HOUR_MS, { people: 5 }, MINUTE_MS)
  const { networkBits, networkPrefix } = fleet.run(6 * MINUTE_MS, { ownerOf48: 150 }).of(OWNER_OF_48)
  assert.deepEqual([networkBits, networkPrefix], [7, 48])
})

test('popularity costs nothing: the same mix at ten and at forty times the rate has the same bits', () => {
  for (const times of [1, 10, 40]) {
    const fleet = new Fleet().run(2 * HOUR_MS, { people: 60, carrier: 40 }, MINUTE_MS)
    fleet.run(6 * MINUTE_MS, { people: 60 * times, carrier: 40 * times })
    assert.deepEqual([fleet.of(CARRIER), fleet.of('192.0.2.1')].map(({ networkBits }) => networkBits), [0, 0]) // biome-ignore format: one line
  }
})

test('visits that only move to another network are no flood, and cost three bits at most', () => {
  const fleet = new Fleet().run(2 * HOUR_MS, { people: 100, carrier: 1000 }, MINUTE_MS)
  assert.equal(fleet.run(6 * MINUTE_MS, { people: 100, rented: 1000 }).of(RENTED).networkBits, 3)
})

test('what a neighbour does costs a network with a day of history one bit, networks and load together', () => {
  const fleet = new Fleet().run(DAY_MS, { people: 20, carrier: 4 }, 10 * MINUTE_MS)
  fleet.run(6 * MINUTE_MS, { people: 20, carrier: 450 })
  const { networkBits, historyBits, isOverBudget } = fleet.of(CARRIER)
  assert.deepEqual([networkBits, historyBits, isOverBudget], [1, 1, true])
})

test('an attack does not become usual: hours later it costs as much', () => {
  const fleet = new Fleet().run(2 * HOUR_MS, { people: 5 }, MINUTE_MS)
  const { networkBits } = fleet.run(6 * MINUTE_MS, { people: 5, ownerOf48: 600 }).of(OWNER_OF_48)
  assert.ok(networkBits >= 8, `${networkBits}`)
  fleet.run(3 * HOUR_MS, { people: 5, ownerOf48: 600 }, 5 * SECOND_MS)
  assert.ok(fleet.of(OWNER_OF_48).networkBits >= networkBits - 1)
})

test('load of an attack is no history: hours later its networks have none', () => {
  const fleet = new Fleet().run(DAY_MS, { people: 5 }, 10 * MINUTE_MS)
  for (const isOfAttack of [true, false]) {
    for (let minute = 0; minute < 300; minute++) {
      fleet.workers[0]!.accepted(address(isOfAttack ? RENTED : CARRIER), isOfAttack)
      fleet.run(MINUTE_MS, {}, MINUTE_MS)
    }
  }
  const [rented, carrier] = [fleet.of(RENTED), fleet.of(CARRIER)]
  assert.ok(
    rented.historyBits === Number.POSITIVE_INFINITY && carrier.historyBits < 2,
    `${carrier.historyBits}`,
  )
})

test('counts are those of all workers, however connections spread', () => {
  const bits = [1, 2, 16, 64].map(workers => {
    const fleet = new Fleet(workers).run(2 * HOUR_MS, { people: 5 }, MINUTE_MS)
    return fleet.run(6 * MINUTE_MS, { rented: 600 }).of(RENTED, workers - 1).networkBits
  })
  assert.deepEqual(bits, [3, 3, 3, 3])
})

test('a worker that met a network above its budget knows what others see of it, until that is within the budget', () => {
  const fleet = new Fleet(2).run(2 * HOUR_MS, { people: 5 }, MINUTE_MS).run(MINUTE_MS, { rented: 240 })
  for (let second = 0; second < 300; second++) {
    for (let proof = 0; proof < 20; proof++) fleet.workers[1]!.accepted(FLOWS.rented(proof))
    fleet.run(SECOND_MS, {})
  }
  assert.deepEqual([fleet.of(RENTED, 0).networkBits, fleet.of(RENTED, 1).networkBits], [4, 4])
  fleet.workers[0]!.accepted(address('192.0.2.1'))
  assert.equal(fleet.workers[0]!.report(1).reports[0]!.proofs, 0, 'asked for before others are reported')
  fleet.run(5 * MINUTE_MS, {})
  assert.deepEqual([fleet.of(RENTED, 0).networkBits, fleet.of(RENTED, 1).networkBits], [0, 0])
})

test('a worker that only issues challenges knows what a network brings to others', () => {
  const fleet = new Fleet(2).run(2 * HOUR_MS, { people: 5 }, MINUTE_MS)
  let bits: number[] = []
  for (let second = 0; second < 60; second++) {
    for (let proof = 0; proof < 20; proof++) fleet.workers[1]!.accepted(FLOWS.rented(proof))
    bits = [0, 1].map(worker => fleet.of(RENTED, worker).networkBits)
    fleet.run(SECOND_MS, {})
  }
  assert.deepEqual(bits, [4, 4])
})

test('a flood of challenges makes a worker forget no network', () => {
  const fleet = new Fleet().run(2 * HOUR_MS, { people: 5 }, MINUTE_MS).run(2 * MINUTE_MS, { rented: 600 })
  const before = fleet.of(RENTED).networkBits
  for (let network = 0; network < 200_000; network++)
    fleet.of(`2001:${(network >> 8).toString(16)}:${((network & 255) << 8).toString(16)}::1`)
  assert.ok(before > 0)
  assert.equal(fleet.of(RENTED).networkBits, before)
})

test('a question is no history: days count from the first proof', () => {
  const table = new NetworkMemory()
  const ask = (nowMs: number, proofs: number) =>
    reportNetworks(table, nowMs, 1, [{ tag: 7, free: 80, proofs, peaceful: proofs }]).networks[0]!.days
  for (let hour = 1; hour < 24; hour++) ask(hour * HOUR_MS, 0)
  assert.deepEqual([ask(DAY_MS, 1), ask(2 * DAY_MS, 1)], [0, 1])
})

test("private networks are the operator's own, and are not counted", () => {
  assert.equal(new Fleet().run(MINUTE_MS, { ownNetwork: 5000 }).of('10.0.0.1'), NEW_SOURCE)
})

/** What a simulated world (`World` of people.ts) is made of: a virtual clock, random draws, and the addresses that visits come from. */

import type { Address } from '../../src/addresses/address.ts'

interface Due {
  readonly atMs: number
  readonly order: number
  readonly action: () => void
}

/** The virtual clock: what is due happens in order of time, then of arrangement. Nothing waits for real time. */
export class Timeline {
  /** Milliseconds since the start of the scenario. */
  nowMs = 0
  #order = 0
  /** A binary heap, the earliest first. */
  readonly #heap: Due[] = []

  at(atMs: number, action: () => void): void {
    const heap = this.#heap
    const due = { atMs: Math.max(atMs, this.nowMs), order: this.#order++, action }
    let index = heap.push(due) - 1
    while (index > 0) {
      const parent = (index - 1) >> 1
      if (!isBefore(due, heap[parent]!)) break
      heap[index] = heap[parent]!
      index = parent
    }
    heap[index] = due
  }

  after(ms: number, action: () => void): void {
    this.at(this.nowMs + ms, action)
  }

  /** Lets everything happen that is due before this time. */
  runUntil(endMs: number): void {
    for (let first = this.#heap[0]; first !== undefined && first.atMs < endMs; first = this.#heap[0]) {
      this.#removeFirst()
      this.nowMs = first.atMs
      first.action()
    }
    this.nowMs = endMs
  }

  #removeFirst(): void {
    const heap = this.#heap
    const last = heap.pop()!
    if (heap.length === 0) return
    let index = 0
    for (let child = 1; child < heap.length; child = 2 * index + 1) {
      if (child + 1 < heap.length && isBefore(heap[child + 1]!, heap[child]!)) child++
      if (!isBefore(heap[child]!, last)) break
      heap[index] = heap[child]!
      index = child
    }
    heap[index] = last
  }
}

function isBefore(a: Due, b: Due): boolean {
  return a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order)
}

/** Random draws. Equal seeds give equal draws. */
export class Draw {
  #state: number

  constructor(seed: number) {
    this.#state = seed >>> 0
  }

  /** 0 to below 1: mulberry32, whose 32 bits are enough for the 10^6 draws of a scenario. */
  share(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }

  below(end: number): number {
    return Math.floor(this.share() * end)
  }

  exponential(mean: number): number {
    return -mean * Math.log(1 - this.share())
  }

  /** @param sigma of the natural logarithm */
  logNormal(median: number, sigma: number): number {
    const radius = Math.sqrt(-2 * Math.log(1 - this.share()))
    return median * Math.exp(sigma * radius * Math.cos(2 * Math.PI * this.share()))
  }

  /** One of the items, by their weights. */
  weighted<Item extends { readonly share: number }>(items: readonly Item[]): Item {
    let rest = this.share() * items.reduce((sum, { share }) => sum + share, 0)
    for (const item of items) {
      rest -= item.share
      if (rest < 0) return item
    }
    return items.at(-1)!
  }
}

/**
 * How many addresses there are, and how they lie in networks: `addresses` of them, `perNetwork` in each network: a /24 with
 * IPv4, a /48 with IPv6 (each address then is a /64 of its own). `networksPerBlock` of them, 1 if not given, lie side by side:
 * up to 16 in one IPv4 /20, 256 in one /16; up to 256 in one IPv6 /40, 65,536 in one /32. Blocks lie apart.
 */
export interface AddressPlan {
  readonly version?: 4 | 6
  readonly addresses: number
  readonly perNetwork?: number
  readonly networksPerBlock?: number
}

const V4_PREFIX = `${'\0'.repeat(10)}\xff\xff`
/** First octets of public IPv4 networks: others are the operator's own, which are not counted. */
const OCTETS = Array.from({ length: 223 }, (_, index) => index + 1).filter(
  octet => ![10, 100, 127, 169, 172, 192].includes(octet),
)
const BLOCKS = OCTETS.length << 12
/** Coprime to their number, so that blocks of two plans rarely coincide. */
const SPREAD = 0x9e379

export class Addresses {
  readonly count: number
  readonly #plan: Required<AddressPlan>
  readonly #start: number

  /** @param start a number that no other plan of the scenario has: its networks lie elsewhere */
  constructor(plan: AddressPlan, start: number) {
    this.#plan = { version: 4, perNetwork: 1, networksPerBlock: 1, ...plan }
    this.#start = start
    this.count = plan.addresses
  }

  /** @param index 0 to below `count` */
  get(index: number): Address {
    const { version, perNetwork, networksPerBlock } = this.#plan
    const network = Math.floor(index / perNetwork)
    const host = index % perNetwork
    const leastBlock = version === 4 ? 16 : 256 // networks of a /20, or of a /40
    // 7919 is a prime, so that plans begin far apart. A larger block begins where a /16 or a /32 does.
    const block = (Math.floor(network / networksPerBlock) * SPREAD + this.#start * 7919) % BLOCKS
    const firstBlock = networksPerBlock > leastBlock ? block - (block % leastBlock) : block
    const id = firstBlock * leastBlock + (network % networksPerBlock) // of the network, among all that there are
    if (version === 4)
      return V4_PREFIX + String.fromCharCode(OCTETS[id >> 16]!, (id >> 8) & 0xff, id & 0xff, host)
    const high = String.fromCharCode(0x20, 0x01, id >> 24, (id >> 16) & 0xff, (id >> 8) & 0xff, id & 0xff)
    return `${high}${String.fromCharCode(host >> 8, host & 0xff)}${'\0'.repeat(7)}\x01`
  }
}

/**
 * Estimates how many networks sent one browser fingerprint to a site in the last five to ten minutes.
 *
 * No store is needed: each worker sees a random sample of connections and multiplies its count by the number of workers. Common
 * devices share a fingerprint, so only large counts matter, and a fingerprint with a small share of the site's visits is never
 * suspicious. Counting is linear counting over 64 bits per fingerprint (Whang et al., 1990), in two periods of five minutes so
 * that old visits expire.
 *
 * The table has a fixed size, so made-up fingerprints cannot fill memory, and a visit makes no garbage (0.6 us). When two fingerprints want a slot, the more frequent stays (Boyer-Moore
 * majority vote).
 *
 * A secret per worker decides which bit a network sets. Otherwise an attacker could set all bits from 64 chosen addresses, and
 * so lower the score of everyone with that device.
 */

import { spread } from './bytes.ts'

const BITS = 64
const HALF_MS = 300_000
/** Fewer in one worker say nothing about the others. */
const SAMPLE_MIN = 8
/** 2 MiB for both periods. */
const SLOTS = 65_536
/** The most popular device of one place brings about a tenth of the visits; a botnet with one browser image brings far more. */
const SUSPICIOUS_SHARE = 0.25

/** 32-bit words of a slot: fingerprint, its 64 bits, its visits. */
const [WORDS, TAG, LOW, HIGH, VISITS] = [4, 0, 1, 2, 3]

/** Visits of one five-minute period. */
interface Half {
  readonly slots: Uint32Array
  readonly visitsBySite: Map<number, number>
}

function emptyHalf(): Half {
  return { slots: new Uint32Array(SLOTS * WORDS), visitsBySite: new Map() }
}

export class FingerprintWatch {
  readonly #workers: number
  readonly #secret: number
  #present = emptyHalf()
  #before = emptyHalf()
  #turnsAtMs = 0

  /** @param secret 32 random bits */
  constructor(workers: number, secret: number) {
    this.#workers = workers
    this.#secret = secret
  }

  /**
   * Notes a visit and estimates the networks; 1 if the fingerprint is not suspicious.
   *
   * @param siteTag any number that identifies the site
   * @param fingerprint hexadecimal, in upper or lower case
   * @param network an IPv4 address, or the first 48 bits of an IPv6 address, as text
   */
  note(siteTag: number, fingerprint: string, network: string, nowMs: number): number {
    if (nowMs >= this.#turnsAtMs) this.#turn(nowMs)
    const { slots } = this.#present
    const visitsHere = (this.#present.visitsBySite.get(siteTag) ?? 0) + 1
    this.#present.visitsBySite.set(siteTag, visitsHere)
    const siteVisits = visitsHere + (this.#before.visitsBySite.get(siteTag) ?? 0)
    const tag = tagOf(siteTag, fingerprint)
    const at = slotOf(tag)
    if (slots[at + TAG] !== tag) {
      if (slots[at + VISITS]! > 0) {
        slots[at + VISITS]!--
        return 1
      }
      slots[at + TAG] = tag
      slots[at + LOW] = slots[at + HIGH] = 0
    }
    const bit = hashOf(network, network.length, this.#secret) % BITS
    if (bit < 32) slots[at + LOW]! |= 1 << bit
    else slots[at + HIGH]! |= 1 << (bit - 32)
    slots[at + VISITS]!++
    return this.#estimate(at, tag, siteVisits)
  }

  #turn(nowMs: number): void {
    const isOld = nowMs >= this.#turnsAtMs + HALF_MS
    this.#before = isOld ? emptyHalf() : this.#present
    this.#present = emptyHalf()
    this.#turnsAtMs = nowMs + HALF_MS
  }

  #estimate(at: number, tag: number, siteVisits: number): number {
    const present = this.#present.slots
    const before = this.#before.slots
    const isSame = before[at + TAG] === tag
    const visits = present[at + VISITS]! + (isSame ? before[at + VISITS]! : 0)
    if (visits < SUSPICIOUS_SHARE * siteVisits) return 1
    const low = present[at + LOW]! | (isSame ? before[at + LOW]! : 0)
    const high = present[at + HIGH]! | (isSame ? before[at + HIGH]! : 0)
    const clear = Math.max(1, BITS - popCount(low) - popCount(high))
    const seenHere = Math.round(BITS * Math.log(BITS / clear))
    // Few networks here do not mean as many at every other worker.
    return seenHere < SAMPLE_MIN ? seenHere : seenHere * this.#workers
  }
}

/** Part of a hash is as good as all of it; made-up fingerprints that agree in it count as one. */
const FINGERPRINT_CHARACTERS = 16

function tagOf(siteTag: number, fingerprint: string): number {
  return hashOf(fingerprint, Math.min(FINGERPRINT_CHARACTERS, fingerprint.length), siteTag)
}

/** FNV-1a of the lower-cased text. */
function hashOf(text: string, length: number, seed: number): number {
  let hash = Math.imul(0x811c9dc5 ^ seed, 0x01000193)
  for (let index = 0; index < length; index++)
    hash = Math.imul(hash ^ (text.charCodeAt(index) | 0x20), 0x01000193)
  return spread(hash)
}

function slotOf(tag: number): number {
  return (tag % SLOTS) * WORDS
}

function popCount(word: number): number {
  let count = 0
  for (let rest = word >>> 0; rest !== 0; rest = (rest & (rest - 1)) >>> 0) count++
  return count
}

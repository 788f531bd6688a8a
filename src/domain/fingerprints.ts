/**
 * Estimates how many networks sent the same browser fingerprint to the same site in the last minutes.
 *
 * Each worker sees a random sample of connections, and multiplies its count by the number of workers. Common devices share
 * a fingerprint, so only large counts matter, and these can be estimated without the store. Many visitors have the same
 * phone, so a fingerprint with only a small share of the site's visits is never suspicious. The estimate is linear counting
 * over 64 bits per fingerprint (Whang et al., 1990). There are two periods of five minutes each, so that old visits expire.
 *
 * The counts are in a table of fixed size: a flood of made-up fingerprints takes no memory, and a visit makes no garbage.
 * A visit takes 0.6 us, where a map of objects took 1.0, all fingerprints different. If two fingerprints share a slot, the
 * one with more visits stays (Boyer and Moore's majority vote), since only frequent ones matter.
 *
 * Each worker draws a secret that decides which bit a network sets. If the function were known, 64 chosen addresses could
 * set all bits, and so lower the score of all visitors with that device.
 */

import { spread } from './bytes.ts'

const BITS = 64
const HALF_LIFE_MS = 300_000
/** A smaller count in one worker says nothing about the other workers. */
const SAMPLE_MIN = 8
/** Both periods together take 2 MiB. */
const SLOTS = 65_536
/** The most popular device of one place has about a tenth of the visits; a botnet with one browser image has far more. */
const SUSPICIOUS_SHARE = 0.25

/** The 32-bit words of a slot: fingerprint, its 64 bits, its visits. */
const [WORDS, TAG, LOW, HIGH, VISITS] = [4, 0, 1, 2, 3]

/** The visits of five minutes. */
interface Half {
  readonly slots: Uint32Array
  /** Visits by site. */
  readonly sites: Map<number, number>
}

function emptyHalf(): Half {
  return { slots: new Uint32Array(SLOTS * WORDS), sites: new Map() }
}

export class FingerprintWatch {
  readonly #workers: number
  readonly #secret: number
  #present = emptyHalf()
  #before = emptyHalf()
  #turnsAtMs = 0

  /**
   * @param workers how many workers share the traffic
   * @param secret 32 random bits
   */
  constructor(workers: number, secret: number) {
    this.#workers = workers
    this.#secret = secret
  }

  /**
   * Notes one visit and estimates the number of networks; 1 if the fingerprint is not suspicious.
   *
   * @param siteTag any number that identifies the site
   * @param fingerprint hexadecimal, in upper or lower case
   * @param network the visitor's IPv4 address, or the first 48 bits of an IPv6 address, as text
   */
  note(siteTag: number, fingerprint: string, network: string, nowMs: number): number {
    if (nowMs >= this.#turnsAtMs) this.#turn(nowMs)
    const { slots } = this.#present
    const visitsHere = (this.#present.sites.get(siteTag) ?? 0) + 1
    this.#present.sites.set(siteTag, visitsHere)
    const siteVisits = visitsHere + (this.#before.sites.get(siteTag) ?? 0)
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
    this.#before = this.#present
    this.#present = emptyHalf()
    this.#turnsAtMs = nowMs + HALF_LIFE_MS
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
    // A few networks in this worker do not mean that each other worker has as many.
    return seenHere < SAMPLE_MIN ? seenHere : seenHere * this.#workers
  }
}

/** A part of a hash is as good as the whole. Made-up fingerprints that agree in this part count as one. */
const FINGERPRINT_CHARACTERS = 16

function tagOf(siteTag: number, fingerprint: string): number {
  return hashOf(fingerprint, Math.min(FINGERPRINT_CHARACTERS, fingerprint.length), siteTag)
}

/** FNV-1a of a text in lower case. */
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

/**
 * Estimates how many networks sent one browser fingerprint to a site in the last five to ten minutes. It needs no store: each
 * worker sees a random sample of connections, and multiplies its count by the number of workers. Common devices share a
 * fingerprint, so only large counts matter.
 *
 * This is linear counting over 64 bits per fingerprint (Whang et al., 1990), in two periods so that old visits expire. Made-up
 * fingerprints cannot fill the table: of two that want a bucket, the more frequent stays (Boyer-Moore majority vote). A visit
 * takes 0.6 us and makes no garbage.
 *
 * A secret per worker decides which bit a network sets. Otherwise 64 chosen addresses could set all, and lower the score of
 * everyone with that device.
 */

import { spread } from './bytes.ts'

const BITS = 64
const HALF_MS = 300_000
/** Fewer tell nothing about other workers. */
const SAMPLE_MIN = 8
/** 2 MiB for both periods. */
const BUCKETS = 65_536
/** A place's most popular device brings about a tenth of the visits, a botnet far more. */
const SUSPICIOUS_SHARE = 0.25

/** 32-bit words of a bucket; LOW and HIGH are its 64 bits. */
const [WORDS, TAG, LOW, HIGH, VISITS] = [4, 0, 1, 2, 3]

interface Half {
  readonly buckets: Uint32Array
  readonly visitsBySite: Map<number, number>
}

function emptyHalf(): Half {
  return { buckets: new Uint32Array(BUCKETS * WORDS), visitsBySite: new Map() }
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
   * Notes a visit and estimates the networks; 1 if nothing is suspicious.
   *
   * @param fingerprint hexadecimal, in either case
   * @param network an IPv4 address, or an IPv6 address's first 48 bits
   */
  note(siteTag: number, fingerprint: string, network: string, nowMs: number): number {
    if (nowMs >= this.#turnsAtMs) this.#turn(nowMs)
    const { buckets } = this.#present
    const visitsHere = (this.#present.visitsBySite.get(siteTag) ?? 0) + 1
    this.#present.visitsBySite.set(siteTag, visitsHere)
    const siteVisits = visitsHere + (this.#before.visitsBySite.get(siteTag) ?? 0)
    const tag = tagOf(siteTag, fingerprint)
    const at = bucketOf(tag)
    if (buckets[at + TAG] !== tag) {
      if (buckets[at + VISITS]! > 0) {
        buckets[at + VISITS]!--
        return 1
      }
      buckets[at + TAG] = tag
      buckets[at + LOW] = buckets[at + HIGH] = 0
    }
    const bit = hashOf(network, network.length, this.#secret) % BITS
    if (bit < 32) buckets[at + LOW]! |= 1 << bit
    else buckets[at + HIGH]! |= 1 << (bit - 32)
    buckets[at + VISITS]!++
    return this.#estimate(at, tag, siteVisits)
  }

  #turn(nowMs: number): void {
    const isOld = nowMs >= this.#turnsAtMs + HALF_MS
    this.#before = isOld ? emptyHalf() : this.#present
    this.#present = emptyHalf()
    this.#turnsAtMs = nowMs + HALF_MS
  }

  #estimate(at: number, tag: number, siteVisits: number): number {
    const present = this.#present.buckets
    const before = this.#before.buckets
    const isSame = before[at + TAG] === tag
    const visits = present[at + VISITS]! + (isSame ? before[at + VISITS]! : 0)
    if (visits < SUSPICIOUS_SHARE * siteVisits) return 1
    const low = present[at + LOW]! | (isSame ? before[at + LOW]! : 0)
    const high = present[at + HIGH]! | (isSame ? before[at + HIGH]! : 0)
    const clear = Math.max(1, BITS - popCount(low) - popCount(high))
    const seenHere = Math.round(BITS * Math.log(BITS / clear))
    return seenHere < SAMPLE_MIN ? seenHere : seenHere * this.#workers
  }
}

/** Enough of a hash; those that agree in these count as one. */
const FINGERPRINT_CHARACTERS = 16

function tagOf(siteTag: number, fingerprint: string): number {
  return hashOf(fingerprint, Math.min(FINGERPRINT_CHARACTERS, fingerprint.length), siteTag)
}

/** FNV-1a; `| 0x20` lowers hexadecimal letters. */
function hashOf(text: string, length: number, seed: number): number {
  let hash = Math.imul(0x811c9dc5 ^ seed, 0x01000193)
  for (let index = 0; index < length; index++)
    hash = Math.imul(hash ^ (text.charCodeAt(index) | 0x20), 0x01000193)
  return spread(hash)
}

function bucketOf(tag: number): number {
  return (tag % BUCKETS) * WORDS
}

function popCount(word: number): number {
  let count = 0
  for (let rest = word >>> 0; rest !== 0; rest = (rest & (rest - 1)) >>> 0) count++
  return count
}

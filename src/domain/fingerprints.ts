/**
 * How many addresses lately sent the same fingerprint to the same site.
 *
 * Each worker watches the connections that the kernel hands it, a random sample, and multiplies by the number of
 * workers: common devices share a fingerprint anyway, so only large counts mean anything, and those are estimated well
 * without asking the store. Many visitors have the same phone, so what counts as many depends on how busy the site is: a
 * fingerprint that is only a small part of the site's visits is never suspicious. Linear counting over 64 bits per fingerprint (Whang et al., 1990), in two halves of five
 * minutes each, so that what is old is forgotten.
 */

const BITS = 64
const HALF_LIFE_MS = 300_000
/** Fewer than this in one worker say nothing about the others. */
const SAMPLE_MIN = 8
const FINGERPRINTS_MAX = 50_000
/** The most popular device of one place has a share of about a tenth; a botnet with one browser image has far more. */
const SUSPICIOUS_SHARE = 0.25

interface Seen {
  low: number
  high: number
  visits: number
}

/** Five minutes of sightings. */
class Half {
  readonly fingerprints = new Map<string, Seen>()
  /** Visits by site. */
  readonly sites = new Map<string, number>()
}

export class FingerprintWatch {
  readonly #workers: number
  #present = new Half()
  #before = new Half()
  #turnsAtMs = 0

  /** @param workers how many workers share the traffic */
  constructor(workers: number) {
    this.#workers = workers
  }

  /**
   * Notes one sighting and estimates the number of addresses; 1 if the fingerprint is just popular.
   *
   * @param fingerprint hexadecimal
   * @param addressHash any well-mixed unsigned 32-bit hash of the address
   */
  note(siteKey: string, fingerprint: string, addressHash: number, nowMs: number): number {
    if (nowMs >= this.#turnsAtMs || this.#present.fingerprints.size >= FINGERPRINTS_MAX) {
      this.#before = this.#present
      this.#present = new Half()
      this.#turnsAtMs = nowMs + HALF_LIFE_MS
    }
    const { fingerprints, sites } = this.#present
    sites.set(siteKey, (sites.get(siteKey) ?? 0) + 1)
    const key = siteKey + fingerprint
    let seen = fingerprints.get(key)
    if (seen === undefined) fingerprints.set(key, (seen = { low: 0, high: 0, visits: 0 }))
    const bit = addressHash % BITS
    if (bit < 32) seen.low |= 1 << bit
    else seen.high |= 1 << (bit - 32)
    seen.visits++
    const before = this.#before.fingerprints.get(key)
    const visits = seen.visits + (before?.visits ?? 0)
    const siteVisits = sites.get(siteKey)! + (this.#before.sites.get(siteKey) ?? 0)
    if (visits < SUSPICIOUS_SHARE * siteVisits) return 1
    return this.#estimate(seen.low | (before?.low ?? 0), seen.high | (before?.high ?? 0))
  }

  #estimate(low: number, high: number): number {
    const set = popCount(low) + popCount(high)
    const clear = Math.max(1, BITS - set)
    const seenHere = Math.round(BITS * Math.log(BITS / clear))
    // A few visitors here are not that many in each other worker too.
    return seenHere < SAMPLE_MIN ? seenHere : seenHere * this.#workers
  }
}

function popCount(word: number): number {
  let count = 0
  for (let rest = word >>> 0; rest !== 0; rest = (rest & (rest - 1)) >>> 0) count++
  return count
}

/**
 * How fast the devices of a site's visitors are (domain/calibrator.ts): adds up this worker's votes, and exchanges the sums
 * for the store's estimates. Only sites that name a solving time take part; without any, nothing is called.
 */

import { type Address, isV4 } from '../domain/address.ts'
import { spread } from '../domain/bytes.ts'
import { type Estimate, isAtBound, type Vote } from '../domain/calibrator.ts'
import { tagOf } from '../domain/sources.ts'
import type { SiteStore } from './store.ts'

/** Sites in one exchange; the others wait. */
const SITES_PER_EXCHANGE = 1000
const SITES_MAX = 100_000
/** An estimate this old is asked for again. Votes of other workers move it slowly. */
const STALE_MS = 60_000

/** Networks that one owner holds, as in domain/sources.ts, have one vote in about ten minutes. */
const [OWNER_BITS_V4, OWNER_BITS_V6] = [24, 48]
const VOTE_MS = 600_000
/** Networks of the same slot share that vote. A secret decides which do, so that nobody chooses whom to silence. */
const SLOTS = 65_536

const NOTHING_LEARNED: Estimate = { lead: 0, leadOfDay: 0 }

export class SpeedTracker {
  readonly #store: Pick<SiteStore, 'addVotes'>
  readonly #now: () => number
  readonly #secret: number
  /** When each slot may vote again; 512 KiB, made with the first vote. */
  #mayVoteAtMs: Float64Array | undefined
  /** Sums of votes by site key; 0 for a site that only asks. */
  readonly #sums = new Map<string, number>()
  readonly #estimates = new Map<string, Estimate & { readonly atMs: number }>()

  /**
   * @param now milliseconds
   * @param secret 32 random bits
   */
  constructor(store: Pick<SiteStore, 'addVotes'>, now: () => number, secret: number) {
    this.#store = store
    this.#now = now
    this.#secret = secret
  }

  /** Bits; 0 until the first exchange after the site was asked for, and while nothing is learned. */
  lead(siteKey: string): number {
    const known = this.#estimates.get(siteKey)
    if (known === undefined || this.#now() - known.atMs > STALE_MS)
      this.#sums.set(siteKey, this.#sums.get(siteKey) ?? 0)
    return known?.lead ?? 0
  }

  /** How many sites have an estimate that moved as far as it may in a day. */
  get atBound(): number {
    return [...this.#estimates.values()].filter(isAtBound).length
  }

  vote(siteKey: string, address: Address, vote: Vote): void {
    if (vote === 0) return
    this.#mayVoteAtMs ??= new Float64Array(SLOTS)
    const network = tagOf(address, isV4(address) ? OWNER_BITS_V4 : OWNER_BITS_V6)
    const slot = spread(network ^ this.#secret) % SLOTS
    const now = this.#now()
    if (now < this.#mayVoteAtMs[slot]!) return
    this.#mayVoteAtMs[slot] = now + VOTE_MS
    this.#sums.set(siteKey, (this.#sums.get(siteKey) ?? 0) + vote)
  }

  /** To be called once a second. */
  async exchange(): Promise<void> {
    if (this.#sums.size === 0) return
    const votes = new Map([...this.#sums].slice(0, SITES_PER_EXCHANGE))
    // Deleted before the call: votes whose answer is lost may have been counted, so they are not sent again.
    for (const siteKey of votes.keys()) this.#sums.delete(siteKey)
    const estimates = await this.#store.addVotes(votes)
    const atMs = this.#now()
    if (this.#estimates.size > SITES_MAX) this.#estimates.clear()
    for (const siteKey of votes.keys())
      this.#estimates.set(siteKey, { ...(estimates.get(siteKey) ?? NOTHING_LEARNED), atMs })
  }
}

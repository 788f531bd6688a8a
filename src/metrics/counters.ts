/** Counters of a worker: of values, in the buckets of a histogram; of names; and all those of one site. */

import type { Reason } from '../domain/outcome.ts'
import type { JudgementReason } from '../domain/score.ts'
import { type Histogram, SCORE_BUCKETS, type SiteStats } from './snapshot.ts'

/** Finest between 0.1 and 50 ms, where most answers are. */
export const LATENCY_BOUNDS_SECONDS: readonly number[] = [
  0.0001, 0.0002, 0.0003, 0.0005, 0.00075, 0.001, 0.0015, 0.002, 0.003, 0.005, 0.0075, 0.01, 0.015, 0.02,
  0.03, 0.05, 0.1, 0.2, 0.5, 1, 2,
]
/** Operations in one call; a call to Redis has at most 128. */
export const BATCH_BOUNDS: readonly number[] = [1, 2, 4, 8, 16, 32, 64, 128]

export class Buckets {
  readonly #bounds: readonly number[]
  readonly #counts: number[]
  #sum = 0

  /** @param bounds ascending */
  constructor(bounds: readonly number[]) {
    this.#bounds = bounds
    this.#counts = new Array(bounds.length + 1).fill(0)
  }

  add(value: number): void {
    const bounds = this.#bounds
    let bucket = 0
    while (bucket < bounds.length && value > bounds[bucket]!) bucket++
    this.#counts[bucket]!++
    this.#sum += value
  }

  snapshot(): Histogram {
    return { bounds: this.#bounds, counts: [...this.#counts], sum: this.#sum }
  }
}

/** Counts by name; the names come from closed lists. */
export class Tally<Name extends string> {
  readonly #counts = new Map<Name, number>()

  add(name: Name): void {
    this.#counts.set(name, (this.#counts.get(name) ?? 0) + 1)
  }

  snapshot(): Record<string, number> {
    const counts: Record<string, number> = {}
    for (const [name, count] of this.#counts) counts[name] = count
    return counts
  }
}

/** A length above the highest difficulty. */
const DIFFICULTIES = 32

export class SiteCounters {
  redeemed = 0
  scoreSum = 0
  readonly refused = new Tally<Reason>()
  readonly #reasons = new Tally<JudgementReason>()
  readonly #difficulties: number[] = new Array(DIFFICULTIES).fill(0)
  readonly #scores: number[] = new Array(SCORE_BUCKETS).fill(0)
  #passed = 0
  #failed = 0

  issued(difficulty: number): void {
    this.#difficulties[difficulty]!++
  }

  /** @param score in hundredths, 0 to 1; null without a score */
  judged(passed: boolean, score: number | null, reasons: readonly JudgementReason[]): void {
    if (passed) this.#passed++
    else this.#failed++
    if (score !== null) {
      this.#scores[Math.floor(Math.round(score * 100) / 10)]!++
      this.scoreSum += score
    }
    for (const reason of reasons) this.#reasons.add(reason)
  }

  snapshot(): SiteStats {
    const difficulties: Record<string, number> = {}
    let challenges = 0
    for (let bits = 0; bits < DIFFICULTIES; bits++) {
      const count = this.#difficulties[bits]!
      if (count > 0) difficulties[bits] = count
      challenges += count
    }
    return {
      challenges,
      passed: this.#passed,
      failed: this.#failed,
      redeemed: this.redeemed,
      refused: this.refused.snapshot(),
      reasons: this.#reasons.snapshot(),
      difficulties,
      scores: [...this.#scores],
    }
  }
}

/** What one worker counts for one site. */

import type { Reason } from '../domain/outcome.ts'
import type { JudgementReason } from '../domain/score.ts'
import type { Exchange } from '../http/exchange.ts'
import type { SiteDirectory } from '../store/site-directory.ts'
import { Tally } from './buckets.ts'
import { SCORE_BUCKETS, type SiteStats } from './snapshot.ts'

/** A length above the highest difficulty. */
const DIFFICULTIES = 32

export class SiteCounters {
  redeemed = 0
  readonly refused = new Tally<Reason>()
  readonly #reasons = new Tally<JudgementReason>()
  readonly #difficulties: number[] = new Array(DIFFICULTIES).fill(0)
  readonly #scores: number[] = new Array(SCORE_BUCKETS).fill(0)
  #scoreSum = 0
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
      this.#scoreSum += score
    }
    for (const reason of reasons) this.#reasons.add(reason)
  }

  get scoreSum(): number {
    return this.#scoreSum
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

/**
 * The site of a refused request, for the metrics: the site of its X-Site-Key or of its API key, whose secret may be wrong.
 * undefined if no such site exists. Read from the cache only: a refused request causes no call to the store.
 */
export function namedSite(
  sites: SiteDirectory,
  { siteKey, apiKeyId }: Pick<Exchange, 'siteKey' | 'apiKeyId'>,
): string | undefined {
  if (siteKey !== '') return sites.cachedSite(siteKey)?.record.siteKey
  return apiKeyId === '' ? undefined : sites.cachedApiKey(apiKeyId)?.siteKey
}

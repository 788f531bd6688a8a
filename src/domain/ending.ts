/**
 * How a request ended: the one value from which the log, the metrics and the trace tell of it. It holds private reasons, which
 * no client sees. The answer itself is a reply (http/replies.ts).
 */

import type { AddressCounts, Climb } from './difficulty.ts'
import type { Traffic } from './meters.ts'
import type { Reason, Refusal } from './outcome.ts'
import type { JudgementReason, ScoreSignals } from './score.ts'
import type { ApiKeyRecord, Site } from './site.ts'
import type { ChallengeBounds } from './solve-time.ts'
import type { TokenClaims } from './token.ts'

export type Ending = Issued | Judged | Redeemed | Refused

export interface Issued {
  readonly kind: 'issued'
  readonly site: Site
  readonly nonce: string
  readonly issuedAtMs: number
  readonly difficulty: number
  readonly bounds: ChallengeBounds
  /** What the difficulty follows from. */
  readonly counts: AddressCounts
  readonly traffic: Traffic
  readonly climb: Climb
}

/** A solution that is answered with 200. */
export interface Judged {
  readonly kind: 'judged'
  readonly site: Site
  readonly nonce: string
  readonly passed: boolean
  /** null if the solution failed without a score. */
  readonly score: number | null
  readonly reasons: readonly JudgementReason[]
  /** The inputs of the score; undefined without one. */
  readonly signals: ScoreSignals | undefined
}

export interface Redeemed {
  readonly kind: 'redeemed'
  readonly apiKey: ApiKeyRecord
  readonly claims: TokenClaims
}

export interface Refused {
  readonly kind: 'refused'
  readonly refusal: Refusal
}

/**
 * One word for an ending, as the metrics name it: a refusal's reason, `failed` for a failed verification, `ok` otherwise.
 *
 * @param ending undefined for a file, a page, or a redemption with a test key
 */
export function wordOf(ending: Ending | undefined): Reason | 'ok' | 'failed' {
  if (ending?.kind === 'refused') return ending.refusal.reason
  return ending?.kind === 'judged' && !ending.passed ? 'failed' : 'ok'
}

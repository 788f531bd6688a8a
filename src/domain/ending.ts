/** Says how a request ended, in one value of which log and metrics are made. Clients learn less (http/replies.ts). */

import type { PuzzleName } from '../protocol/proof.ts'
import type { Reason, Refusal } from './outcome.ts'
import type { AddressCounts, DifficultyBounds, Price, Traffic } from './price.ts'
import type { JudgementReason, ScoreSignals } from './score.ts'
import type { ApiKeyRecord, Site } from './site.ts'
import type { TokenClaims } from './token.ts'

export type Ending = Issued | Judged | Redeemed | Refused

export interface Issued {
  readonly kind: 'issued'
  readonly site: Site
  readonly nonce: string
  readonly issuedAtMs: number
  readonly puzzle: PuzzleName
  readonly difficulty: number
  // What made the difficulty (price.ts): it is `bounds.base` and the bits of `price`, within `bounds`.
  readonly bounds: DifficultyBounds
  readonly counts: AddressCounts
  readonly traffic: Traffic
  readonly price: Price
}

/** A solution answered with 200. */
export interface Judged {
  readonly kind: 'judged'
  readonly site: Site
  readonly nonce: string
  readonly passed: boolean
  /** null if it failed without a score; `signals` are undefined then. */
  readonly score: number | null
  readonly reasons: readonly JudgementReason[]
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
  readonly subject?: RefusalSubject | undefined
}

/** What a refused request was about, as far as it was read. A visitor's request has its site key in the exchange. */
export interface RefusalSubject {
  /** The API key's site, once the key was found valid. */
  readonly siteKey?: string | undefined
  readonly apiKeyId?: string | undefined
  readonly nonce?: string | undefined
}

/** The label `outcome` of metrics. A file, a page or a redemption with a test key has no ending, and counts as `ok`. */
export function outcomeLabel(ending: Ending | undefined): Reason | 'ok' | 'failed' {
  if (ending?.kind === 'refused') return ending.refusal.reason
  return ending?.kind === 'judged' && !ending.passed ? 'failed' : 'ok'
}

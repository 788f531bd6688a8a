/** What one worker counts: plain numbers on the request path, put into words only when somebody asks. */

import type { Events, IssuedChallenge, Judgement } from '../endpoints/service.ts'
import type { Exchange, ExchangeObserver, Part } from '../http/exchange.ts'
import type { ReplyOutcome } from '../http/replies.ts'

/** Everything that a worker has counted since its start, so that a lost message loses nothing. */
export interface StatsSnapshot {
  /** Answers by `<part> <status> <outcome>`. */
  readonly answers: Readonly<Record<string, number>>
}

export class Stats implements Events, ExchangeObserver {
  readonly #answers = new Map<string, number>()

  snapshot(): StatsSnapshot {
    return { answers: Object.fromEntries(this.#answers) }
  }

  answered(part: Part, status: number, outcome: ReplyOutcome, _startedAtMs: number): void {
    const key = `${part} ${status} ${outcome}`
    this.#answers.set(key, (this.#answers.get(key) ?? 0) + 1)
  }

  aborted(_part: Part): void {}

  faulted(_part: Part, _error: unknown): void {}

  issued(_exchange: Exchange, _challenge: IssuedChallenge): void {}

  judged(_exchange: Exchange, _judgement: Judgement): void {}

  redeemed(): void {}

  refused(): void {}
}

import { lookedAtOf } from './turn.ts'

/** Times of a server are told modulo this; see lua/clock.lua. */
const CLOCK_WRAP_MS = 2 ** 24
/** For so long a process vouches that the server's clock was not set. */
const VOUCHED_MS_MAX = 3_600_000

/** When it was last seen that an epoch holds, by that server's clock, as its replies say it; see lua/answers.lua. */
export class LastLook {
  /** Milliseconds; '' before the first. */
  at = ''
  #learntAtMs = 0

  learn(reply: Buffer): void {
    this.at = lookedAtOf(reply)
    this.#learntAtMs = performance.now()
  }

  /**
   * What time it must be there now, by this process's clock since then; '' if that is not known. Whichever server answers
   * next: it trusts this only if it is the same process.
   */
  expectedNow(): string {
    const sinceMs = performance.now() - this.#learntAtMs
    if (this.at === '' || sinceMs > VOUCHED_MS_MAX) return ''
    return String((Number(this.at) + Math.round(sinceMs)) % CLOCK_WRAP_MS)
  }
}

import { epochOf, lookedAtOf } from './turn.ts'

/** Times of a server are told modulo this; see lua/clock.lua. */
const CLOCK_WRAP_MS = 2 ** 24
/** For so long a process vouches that the server's clock was not set. */
const VOUCHED_MS_MAX = 3_600_000

/** When it was last seen that an epoch holds, by that server's clock, as its replies say it; see lua/answers.lua. */
export class LastLook {
  /** Milliseconds; '' before the first. */
  at = ''
  #learntAtMs = 0
  #epoch = 0

  /** @param askedAtMs when the call went out, by `performance.now`: its reply may have waited to be read */
  learn(reply: Buffer, askedAtMs: number): void {
    this.at = lookedAtOf(reply)
    this.#learntAtMs = askedAtMs
    this.#epoch = epochOf(reply)
  }

  /** For a process that was told at once that it expects another time than it is: the clock there was set. */
  forget(): void {
    this.at = ''
  }

  /**
   * What time it must be there now, by this process's clock since then, and under which epoch; '' if that is not known. It
   * may be sent to another server than the one that it is of, which then goes by the epoch.
   */
  expectedNow(): string {
    const sinceMs = performance.now() - this.#learntAtMs
    if (this.at === '' || sinceMs > VOUCHED_MS_MAX) return ''
    const timeMs = (Number(this.at) + Math.round(sinceMs)) % CLOCK_WRAP_MS
    return `${timeMs} ${this.#epoch}`
  }
}

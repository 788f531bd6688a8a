import { epochOf, lookedAtOf } from './turn.ts'

/** Times in a server's replies are modulo this; see lua/clock.lua. */
const CLOCK_WRAP_MS = 2 ** 24
/** Longest time since the last reply over which a process can say what time the server must have; see lua/answers.lua. */
const VOUCHED_MS_MAX = 3_600_000

/** When the server last confirmed its epoch, by the server's clock as its replies give it; see lua/answers.lua. */
export class LastLook {
  /** Milliseconds; '' before the first reply. */
  at = ''
  #learntAtMs = 0
  #epoch = 0

  /** @param askedAtMs when the call was sent, by `performance.now`: its reply may have waited to be read */
  learn(reply: Buffer, askedAtMs: number): void {
    this.at = lookedAtOf(reply)
    this.#learntAtMs = askedAtMs
    this.#epoch = epochOf(reply)
  }

  /** For a process whose call was refused as LATE without delay: the server's clock was set. */
  forget(): void {
    this.at = ''
  }

  /**
   * The time that the server's clock must show now, by this process's clock since the last reply, and that reply's epoch; ''
   * if unknown. Another server that gets this time sees by the epoch that the time is not its own.
   */
  expectedNow(): string {
    const sinceMs = performance.now() - this.#learntAtMs
    if (this.at === '' || sinceMs > VOUCHED_MS_MAX) return ''
    const timeMs = (Number(this.at) + Math.round(sinceMs)) % CLOCK_WRAP_MS
    return `${timeMs} ${this.#epoch}`
  }
}

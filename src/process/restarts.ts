const SETTLED_MS = 5000 // a process that ran for so long did not crash quickly
const FIRST_DELAY_MS = 100

/** Decides how soon a process that has ended is started again: at once, unless it crashes again and again soon after its start. */
export class Restarts {
  /** The next start waits for this time: not at all after the first quick crash, then for doubled delays. */
  delayMs = 0
  #quickCrashes = 0

  /** @param startedAtMs by `performance.now` */
  crashed(startedAtMs: number, delayMsMax: number): void {
    this.#quickCrashes = performance.now() - startedAtMs < SETTLED_MS ? this.#quickCrashes + 1 : 0
    const isFirst = this.#quickCrashes <= 1
    this.delayMs = isFirst ? 0 : Math.min(delayMsMax, FIRST_DELAY_MS * 2 ** (this.#quickCrashes - 2))
  }
}

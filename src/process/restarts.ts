/** Decides how soon a process that has ended is started again: at once, unless it crashes again and again soon after its start. */

const SETTLED_MS = 5000
const FIRST_DELAY_MS = 100

export class Restarts {
  readonly #delayMsMax: number
  /** Crashes in a row, each soon after a start. */
  #quickCrashes = 0

  constructor(delayMsMax: number) {
    this.#delayMsMax = delayMsMax
  }

  /** @param startedAtMs by `performance.now` */
  crashed(startedAtMs: number): void {
    const isQuick = performance.now() - startedAtMs < SETTLED_MS
    this.#quickCrashes = isQuick ? this.#quickCrashes + 1 : 0
  }

  /** The first quick crash is followed by a start at once, later ones by doubled delays. */
  get delayMs(): number {
    if (this.#quickCrashes <= 1) return 0
    return Math.min(this.#delayMsMax, FIRST_DELAY_MS * 2 ** (this.#quickCrashes - 2))
  }
}

/** Limits the lines a minute for one kind of event, so that neither traffic nor an attack fills a disk. */

export class Quota {
  readonly #linesMax: number
  #lines = 0
  readonly #leftOut = new Map<string, number>()

  /** @param linesMax between two calls of `renew` */
  constructor(linesMax: number) {
    this.#linesMax = linesMax
  }

  /** Whether one more line may be written; if not, the line is counted under this name. */
  admits(name: string): boolean {
    if (this.#lines < this.#linesMax) {
      this.#lines++
      return true
    }
    this.#leftOut.set(name, (this.#leftOut.get(name) ?? 0) + 1)
    return false
  }

  /** Starts the next minute. Returns how many lines were left out in the last one, by name. */
  renew(): ReadonlyMap<string, number> {
    this.#lines = 0
    const leftOut = new Map(this.#leftOut)
    this.#leftOut.clear()
    return leftOut
  }
}

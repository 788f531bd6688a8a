/** The limits as the specification states them, implemented as simply as possible: a list of the times of admitted requests. */

const WINDOW_MS = 60_000

export class LimitModel {
  readonly #admitted: { at: number; label: string }[] = []

  /** Requests admitted under a label in the 60 seconds before `now`. */
  count(label: string, now: number): number {
    return this.#live(label, now).length
  }

  /** Milliseconds until one more request would fit; 0 if it fits now. */
  waitMs(label: string, limit: number, now: number): number {
    const live = this.#live(label, now)
    const excess = live.length - limit + 1
    return excess <= 0 ? 0 : live[excess - 1]! + WINDOW_MS - now
  }

  admit(labels: readonly string[], now: number): void {
    for (const label of labels) this.#admitted.push({ at: now, label })
  }

  #live(label: string, now: number): number[] {
    return this.#admitted
      .filter(entry => entry.label === label && now - entry.at < WINDOW_MS)
      .map(({ at }) => at)
  }
}

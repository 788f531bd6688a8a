/** The moment at which the viewer points. All plots share it, so that curves can be compared. */

type OnCursor = (timeMs: number | null) => void

export class Cursor {
  readonly #listeners: OnCursor[] = []
  #timeMs: number | null = null

  /** Unix milliseconds; null if the viewer points at no moment. */
  get timeMs(): number | null {
    return this.#timeMs
  }

  set(timeMs: number | null): void {
    if (timeMs === this.#timeMs) return
    this.#timeMs = timeMs
    for (const listener of this.#listeners) listener(timeMs)
  }

  onMove(listener: OnCursor): void {
    this.#listeners.push(listener)
  }
}

/** The step whose end is nearest to a time; -1 if there is none. */
export function nearestIndex(times: readonly number[], timeMs: number): number {
  let nearest = -1
  let leastMs = Infinity
  for (const [index, time] of times.entries()) {
    const distanceMs = Math.abs(time - timeMs)
    if (distanceMs < leastMs) {
      leastMs = distanceMs
      nearest = index
    }
  }
  return nearest
}

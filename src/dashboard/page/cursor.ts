/** The moment that the viewer points at. All plots show it. */

type OnCursor = (timeMs: number | null) => void

export class Cursor {
  readonly #listeners: OnCursor[] = []
  #timeMs: number | null = null

  /** Unix milliseconds; null if the viewer points nowhere. */
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

/** The index of the step that ends nearest to a time; -1 without steps. */
export function nearestIndex(times: readonly number[], timeMs: number): number {
  const distancesMs = times.map(time => Math.abs(time - timeMs))
  return distancesMs.indexOf(Math.min(...distancesMs))
}

const PAGE_STEPS = 10

/** The step that a key moves to, perhaps beyond the first or last, so callers clamp it; null to point nowhere. */
export const KEYS: Readonly<Record<string, (index: number, count: number) => number | null>> = {
  ArrowLeft: index => index - 1,
  ArrowDown: index => index - 1,
  ArrowRight: index => index + 1,
  ArrowUp: index => index + 1,
  PageDown: index => index - PAGE_STEPS,
  PageUp: index => index + PAGE_STEPS,
  Home: () => 0,
  End: (_, count) => count - 1,
  Escape: () => null,
}

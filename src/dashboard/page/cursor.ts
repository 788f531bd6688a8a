/** Lets the viewer point at a moment, which all plots then show. Assistive technology sees each plot as a slider over time. */

type OnCursor = (timeMs: number | null) => void

export class Cursor {
  readonly #listeners: OnCursor[] = []
  #timeMs: number | null = null

  /** Unix milliseconds. */
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

export interface TimePlot {
  /** Step ends, oldest first. */
  readonly times: readonly number[]
  /** The time at a number of pixels from the left edge. */
  timeAt(x: number): number
  /** A step's numbers, for assistive technology. */
  text(index: number): string
}

const PAGE_STEPS = 10

export function makeSlider(element: HTMLElement, label: string, cursor: Cursor, plot: TimePlot): void {
  element.tabIndex = 0
  element.setAttribute('role', 'slider')
  element.setAttribute('aria-label', `${label}: moment`)
  updateSlider(element, plot, cursor)
  const moveTo = (index: number) => {
    const time = plot.times[Math.max(0, Math.min(plot.times.length - 1, index))]
    cursor.set(time ?? null)
  }
  const point = (event: PointerEvent) => {
    const { left } = element.getBoundingClientRect()
    moveTo(nearestIndex(plot.times, plot.timeAt(event.clientX - left)))
  }
  element.addEventListener('pointermove', point)
  element.addEventListener('pointerdown', point)
  // The moment stays after a touch, because its numbers must be readable.
  element.addEventListener('pointerleave', event => {
    if (event.pointerType !== 'touch') cursor.set(null)
  })
  element.addEventListener('blur', () => cursor.set(null))
  element.addEventListener('keydown', event => {
    const move = KEYS[event.key]
    if (move === undefined) return
    event.preventDefault()
    const target = move(currentIndex(plot, cursor), plot.times.length)
    if (target === null) cursor.set(null)
    else moveTo(target)
  })
}

export function updateSlider(element: HTMLElement, plot: TimePlot, cursor: Cursor): void {
  const last = Math.max(0, plot.times.length - 1)
  const index = currentIndex(plot, cursor)
  element.setAttribute('aria-valuemin', '0')
  element.setAttribute('aria-valuemax', String(last))
  element.setAttribute('aria-valuenow', String(Math.max(0, index)))
  element.setAttribute('aria-valuetext', plot.times.length === 0 ? 'no numbers yet' : plot.text(index))
}

/** The latest step if the viewer points nowhere. */
function currentIndex(plot: TimePlot, cursor: Cursor): number {
  return cursor.timeMs === null ? plot.times.length - 1 : nearestIndex(plot.times, cursor.timeMs)
}

/** The step that a key moves to; null to point at none. */
const KEYS: Readonly<Record<string, (index: number, count: number) => number | null>> = {
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

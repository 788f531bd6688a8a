/** The ticks of axes. */

const NICE = [1, 2, 5, 10] as const

/** About `most` ticks, from 0 to at least `max`. */
export function ticksFromZero(max: number, most: number, isWhole = false): number[] {
  const least = max / most
  const power = 10 ** Math.floor(Math.log10(least || 1))
  const nice = NICE.find(step => step * power >= least * 0.9999) ?? 10
  const step = isWhole ? Math.max(1, nice * power) : nice * power
  const ticks: number[] = []
  for (let index = 0; ; index++) {
    ticks.push(Number((index * step).toPrecision(10))) // 0.30000000000000004 becomes 0.3
    if (index > 0 && index * step >= max * 0.9999) return ticks
  }
}

const MINUTE_MS = 60_000
const TIME_STEPS_MINUTES = [1, 2, 5, 10, 15, 30, 60, 120, 180, 240, 360, 720] as const

/**
 * Ticks are at round local times.
 *
 * @param most labels that fit
 * @param offsetMinutes from `Date.getTimezoneOffset`
 */
export function timeTicks(fromMs: number, toMs: number, most: number, offsetMinutes: number): number[] {
  const spanMinutes = (toMs - fromMs) / MINUTE_MS
  const step = TIME_STEPS_MINUTES.find(minutes => spanMinutes / minutes <= most) ?? 1440
  const stepMs = step * MINUTE_MS
  const shiftMs = offsetMinutes * MINUTE_MS
  const ticks: number[] = []
  for (let at = Math.ceil((fromMs - shiftMs) / stepMs) * stepMs + shiftMs; at <= toMs; at += stepMs)
    ticks.push(at)
  return ticks
}

const SPAN_MIN_MS = { '30m': 5 * MINUTE_MS, '24h': 30 * MINUTE_MS } as const
const SPAN_MAX_MS = { '30m': 30 * MINUTE_MS, '24h': 24 * 60 * MINUTE_MS } as const

/** The range, or the time since the start if shorter. */
export function timeSpan(
  range: keyof typeof SPAN_MAX_MS,
  nowMs: number,
  startedAtMs: number,
): { fromMs: number; toMs: number } {
  const spanMs = Math.min(SPAN_MAX_MS[range], Math.max(SPAN_MIN_MS[range], nowMs - startedAtMs))
  return { fromMs: nowMs - spanMs, toMs: nowMs }
}

/** Chooses the ticks of axes, and the time that plots show. */

import type { Range } from '../data.ts'

const NEARLY = 0.9999 // forgives the rounding of fractions

/**
 * Ticks from 0 to at least `max`, at multiples of 1, 2 or 5 times a power of ten.
 *
 * @param count wanted number of ticks
 * @param isWhole true if only whole numbers have ticks
 */
export function ticksFromZero(max: number, count: number, isWhole = false): number[] {
  const stepMin = max / count
  const power = 10 ** Math.floor(Math.log10(stepMin || 1))
  const factor = [1, 2, 5].find(factor => factor * power >= stepMin * NEARLY) ?? 10
  const step = isWhole ? Math.max(1, factor * power) : factor * power
  const ticks: number[] = []
  for (let index = 0; ; index++) {
    ticks.push(Number((index * step).toPrecision(10))) // 0.30000000000000004 becomes 0.3
    if (index > 0 && index * step >= max * NEARLY) return ticks
  }
}

const MINUTE_MS = 60_000
const TIME_STEPS_MINUTES = [1, 2, 5, 10, 15, 30, 60, 120, 180, 240, 360, 720] as const

/**
 * Ticks at round local times.
 *
 * @param ticksMax number of labels that fit
 * @param offsetMinutes from `Date.getTimezoneOffset`
 */
export function timeTicks(fromMs: number, toMs: number, ticksMax: number, offsetMinutes: number): number[] {
  const spanMinutes = (toMs - fromMs) / MINUTE_MS
  const step = TIME_STEPS_MINUTES.find(minutes => spanMinutes / minutes <= ticksMax) ?? 24 * 60
  const stepMs = step * MINUTE_MS
  const shiftMs = offsetMinutes * MINUTE_MS
  const ticks: number[] = []
  for (let at = Math.ceil((fromMs - shiftMs) / stepMs) * stepMs + shiftMs; at <= toMs; at += stepMs)
    ticks.push(at)
  return ticks
}

const SPANS = {
  '30m': { minMs: 5 * MINUTE_MS, maxMs: 30 * MINUTE_MS },
  '24h': { minMs: 30 * MINUTE_MS, maxMs: 24 * 60 * MINUTE_MS },
}

/** The time that plots show: since the primary process started, within the bounds of SPANS. A young service shows time before it. */
export function timeSpan(range: Range, nowMs: number, startedAtMs: number) {
  const { minMs, maxMs } = SPANS[range]
  return { fromMs: nowMs - Math.min(maxMs, Math.max(minMs, nowMs - startedAtMs)), toMs: nowMs }
}

/** Axes: maps values to positions, and chooses the values that are marked. */

export interface Scale {
  /** From 0, the start of the axis, to 1, its end. */
  position(value: number): number
  readonly ticks: readonly number[]
}

/** Ticks of a linear axis at least; two or three more come of rounding. */
const TICKS_MIN = 4
const NICE_STEPS = [1, 2, 5, 10] as const
/** An axis over more powers of ten than this has no ticks in between. */
const FINE_DECADES_MAX = 2
const DECADE_TICKS_MAX = 8

export function isShowable(value: number, isLog: boolean): boolean {
  return Number.isFinite(value) && (!isLog || value > 0)
}

/** @param values at least one, all of them showable on such an axis */
export function scaleOf(values: readonly number[], isLog: boolean, includesZero = false): Scale {
  const [min, max] = [Math.min(...values), Math.max(...values)]
  if (isLog) return logScale(min, max)
  return includesZero ? linearScale(Math.min(0, min), Math.max(0, max)) : linearScale(min, max)
}

function linearScale(min: number, max: number): Scale {
  const step = niceStep((max - min || Math.abs(max) || 1) / TICKS_MIN)
  const first = Math.floor(min / step)
  const last = Math.max(first + 1, Math.ceil(max / step))
  const ticks = Array.from({ length: last - first + 1 }, (_, index) => rounded((first + index) * step))
  const [start, end] = [ticks[0]!, ticks.at(-1)!]
  return { position: value => (value - start) / (end - start), ticks }
}

/** The largest of 1, 2, 5 times a power of ten that is at most so much. */
function niceStep(most: number): number {
  const power = 10 ** Math.floor(Math.log10(most))
  return power * NICE_STEPS.findLast(step => rounded(step * power) <= rounded(most))!
}

function logScale(min: number, max: number): Scale {
  const marks = logMarks(Math.floor(Math.log10(min)), Math.ceil(Math.log10(max)))
  const first = Math.max(
    0,
    marks.findLastIndex(mark => mark <= min),
  )
  const last = marks.findIndex(mark => mark >= max)
  const ticks = marks.slice(first, Math.max(last, first + 1) + 1)
  const [start, end] = [Math.log10(ticks[0]!), Math.log10(ticks.at(-1)!)]
  return { position: value => (Math.log10(value) - start) / (end - start), ticks }
}

function logMarks(firstExponent: number, lastExponent: number): number[] {
  const decades = lastExponent - firstExponent
  const factors = decades <= FINE_DECADES_MAX ? [1, 2, 5] : [1]
  const stride = Math.ceil(decades / DECADE_TICKS_MAX) || 1
  const marks: number[] = []
  for (let exponent = firstExponent; exponent < lastExponent + stride; exponent += stride) {
    marks.push(...factors.map(factor => rounded(factor * 10 ** exponent)))
  }
  return [...marks, rounded(10 ** (lastExponent + stride))]
}

/** Sums of tenths are none: 0.30000000000000004 is 0.3. */
function rounded(value: number): number {
  return Number(value.toPrecision(12))
}

const FIGURES = new Intl.NumberFormat('en', { maximumSignificantDigits: 4 })
const SHORT = new Intl.NumberFormat('en', { notation: 'compact', maximumSignificantDigits: 3 })

/** Four digits that count: "12.35", "1,235,000". */
export function figureText(value: number): string {
  return FIGURES.format(value)
}

/** For an axis: "12.4", "1.2M". */
export function tickText(value: number): string {
  return SHORT.format(value)
}

/** Numbers and times as text. */

const COMPACT = new Intl.NumberFormat('en', { notation: 'compact', maximumSignificantDigits: 3 })
const TWO_DIGITS = new Intl.NumberFormat('en', { maximumSignificantDigits: 2 })
const ONE_DECIMAL = new Intl.NumberFormat('en', { minimumFractionDigits: 1, maximumFractionDigits: 1 })

/** A dash if nothing was measured. */
export function orDash(value: number | null | undefined, text: (value: number) => string): string {
  return value === null || value === undefined ? '–' : text(value)
}

/** "1,234,567". */
export const exact = new Intl.NumberFormat('en').format

/** "0", "12", "1.23k", "4.5M". */
export function short(value: number): string {
  return COMPACT.format(value).replace('K', 'k')
}

/** "0", "<0.01", "0.25", "12.3", "1.2k". */
export function rate(perSecond: number): string {
  if (perSecond > 0 && perSecond < 0.01) return '<0.01'
  return perSecond < 1 ? TWO_DIGITS.format(perSecond) : short(perSecond)
}

/** "97.3 %"; "100 %" and "0 %" only if the share is exactly that. */
export function percent(share: number): string {
  if (share > 0 && share < 0.001) return '<0.1 %'
  if (share < 1 && share > 0.999) return '>99.9 %'
  if (share === 0 || share === 1) return `${100 * share} %`
  return `${ONE_DECIMAL.format(100 * share)} %`
}

/** "0.21 ms", "3.4 ms", "120 ms", "1.2 s". */
export function milliseconds(ms: number): string {
  if (ms < 10) return `${TWO_DIGITS.format(ms)} ms`
  return Math.round(ms) < 1000 ? `${Math.round(ms)} ms` : `${TWO_DIGITS.format(ms / 1000)} s`
}

/** "5 s", "3 min", "2 h 5 min", "3 d 4 h". */
export function duration(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds))
  if (whole < 90) return `${whole} s`
  const minutes = Math.round(whole / 60)
  if (minutes < 90) return `${minutes} min`
  const hours = Math.floor(minutes / 60)
  if (hours < 48) return minutes % 60 === 0 ? `${hours} h` : `${hours} h ${minutes % 60} min`
  return `${Math.floor(hours / 24)} d ${hours % 24} h`
}

const DAY = new Intl.DateTimeFormat('en', { weekday: 'short', day: 'numeric', month: 'short' })

/** "14:05", in the viewer's time zone, like all times here. */
export const clock = new Intl.DateTimeFormat('en', { timeStyle: 'short', hourCycle: 'h23' }).format

/** "14:05:10". */
export const clockSeconds = new Intl.DateTimeFormat('en', { timeStyle: 'medium', hourCycle: 'h23' }).format

/** "Mon, Mar 3, 14:05". */
export function moment(ms: number): string {
  return `${DAY.format(ms)}, ${clock(ms)}`
}

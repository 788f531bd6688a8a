/** The rules for site keys, durations and times as people type them. */

import { isSiteKey } from '../domain/site.ts'
import type { ValueRule } from '../domain/value-forms.ts'

export const SITE_KEY_RULE: ValueRule = {
  expects: 'site_ and 22 letters or digits',
  accepts: isSiteKey,
}

const UNIT_MS = { m: 60_000, h: 3_600_000, d: 86_400_000 } as const
const DURATION = /^([1-9]\d{0,4})([mhd])$/
const DATE = /^(\d{4})-(\d{2})-(\d{2})$/
const TIME = /^(\d{4}-\d{2}-\d{2})T\d{2}:\d{2}(:\d{2}(\.\d{1,3})?)?(Z|[+-]\d{2}:\d{2})$/

/** Unix milliseconds of a date, a time, or a duration ahead of now or ago; undefined for other text. */
export function whenMs(text: string, direction: 'ahead' | 'ago'): number | undefined {
  const duration = durationMs(text)
  if (duration === undefined) return momentMs(text)
  return direction === 'ahead' ? Date.now() + duration : Date.now() - duration
}

/** Milliseconds of `90d`, `12h` or `30m`; undefined for other text. */
export function durationMs(text: string): number | undefined {
  const [, count, unit] = DURATION.exec(text) ?? []
  return count === undefined ? undefined : Number(count) * UNIT_MS[unit as keyof typeof UNIT_MS]
}

/** Unix milliseconds of `2027-01-31` (its start in UTC) or `2027-01-31T12:00Z`; undefined for other text. */
function momentMs(text: string): number | undefined {
  const day = DATE.test(text) ? text : TIME.exec(text)?.[1]
  const [startMs, unixMs] = [Date.parse(day ?? ''), Date.parse(text)]
  if (day === undefined || Number.isNaN(startMs) || Number.isNaN(unixMs)) return undefined
  const isDay = new Date(startMs).toISOString().startsWith(day) // Date.parse reads February 30 as March 2
  return isDay ? unixMs : undefined
}

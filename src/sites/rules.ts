/** Rules for values given as text, and for the texts of a site's settings. Flags and files share these rules. */

import { parseRange } from '../domain/address.ts'
import { isOriginPattern } from '../domain/origin.ts'
import { isSiteKey } from '../domain/site.ts'
import { DIFFICULTY_MAX, DIFFICULTY_MIN } from '../protocol/proof.ts'

/** A value that is given as text: by a flag, by position or by an environment variable. */
export interface ValueRule {
  /** Completes "expected ..." in error lines. */
  readonly expects: string
  readonly accepts: (text: string) => boolean
  /** What was probably meant by a text that is not accepted. */
  readonly suggest?: (text: string) => string | undefined
  /** Never repeated in an error line. */
  readonly isSecret?: true
}

/** A call that cannot be understood; its message is one line that names the flag or argument and what was expected. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

export const NAME_CHARACTERS_MAX = 100

export interface IntegerRule extends ValueRule {
  readonly least: number
  readonly most: number
}

export function integerRule(least: number, most: number): IntegerRule {
  return {
    least,
    most,
    expects: `an integer from ${least} to ${most}`,
    accepts: text => /^[1-9]\d*$/.test(text) && Number(text) >= least && Number(text) <= most,
  }
}

export const BITS = integerRule(DIFFICULTY_MIN, DIFFICULTY_MAX)
/** As in the service's own settings. */
export const PER_MINUTE = integerRule(1, 1_000_000)
/** From 16 bits on slow devices to where visitors would leave. */
export const SOLVE_MS = integerRule(20, 10_000)

export const SITE_KEY_RULE: ValueRule = {
  expects: 'site_ and 22 letters or digits',
  accepts: isSiteKey,
}

export const NAME: ValueRule = {
  expects: `1 to ${NAME_CHARACTERS_MAX} printable characters`,
  accepts: isName,
}

export const ORIGIN: ValueRule = {
  expects: 'an origin as browsers send it, such as https://example.com or https://*.example.com',
  accepts: isOriginPattern,
  suggest: nearestOrigin,
}

export const CIDR: ValueRule = {
  expects: 'an IP address or a CIDR, such as 203.0.113.7 or 203.0.113.0/24',
  accepts: text => parseRange(text) !== undefined,
}

/** Names are printed to terminals, so they hold no control characters. */
function isName(text: string): boolean {
  const length = text.trim().length
  return length >= 1 && length <= NAME_CHARACTERS_MAX && !/[\p{Cc}\p{Zl}\p{Zp}]/u.test(text)
}

/** Addresses copied from a browser's address bar have a path, capitals or a default port, or lack their scheme. */
function nearestOrigin(text: string): string | undefined {
  const scheme = /^(localhost|127\.)/i.test(text) ? 'http' : 'https'
  const address = /^https?:\/\//i.test(text) ? text : `${scheme}://${text}`
  if (!URL.canParse(address)) return undefined
  const { origin } = new URL(address)
  return isOriginPattern(origin) ? origin : undefined
}

const UNIT_MS = { m: 60_000, h: 3_600_000, d: 86_400_000 } as const
const LENGTH = /^([1-9]\d{0,4})([mhd])$/
const DATE = /^(\d{4})-(\d{2})-(\d{2})$/
const TIME = /^(\d{4}-\d{2}-\d{2})T\d{2}:\d{2}(:\d{2}(\.\d{1,3})?)?(Z|[+-]\d{2}:\d{2})$/

/**
 * A date, a time, or how long from now (before now, where the sign is -1), in Unix milliseconds; undefined for any other text.
 */
export function whenMs(text: string, sign: 1 | -1): number | undefined {
  const length = lengthMs(text)
  return length === undefined ? momentMs(text) : Date.now() + sign * length
}

/** A duration such as `90d`, `12h` or `30m`, in milliseconds; undefined for any other text. */
function lengthMs(text: string): number | undefined {
  const [, count, unit] = LENGTH.exec(text) ?? []
  return count === undefined ? undefined : Number(count) * UNIT_MS[unit as keyof typeof UNIT_MS]
}

/** `2027-01-31`, which means its start in UTC, or `2027-01-31T12:00Z`, in Unix milliseconds; undefined for any other text. */
function momentMs(text: string): number | undefined {
  const day = DATE.test(text) ? text : TIME.exec(text)?.[1]
  if (day === undefined || !isDay(day)) return undefined
  const unixMs = Date.parse(text)
  return Number.isNaN(unixMs) ? undefined : unixMs
}

/** Whether the day exists. Date.parse reads February 30 as March 2. */
function isDay(text: string): boolean {
  const unixMs = Date.parse(text)
  return !Number.isNaN(unixMs) && new Date(unixMs).toISOString().startsWith(text)
}

/** What a value given as text may be, and what the texts of a site's settings may be: one rule for flags and for files. */

import { parseRange } from '../domain/address.ts'
import { isOriginPattern } from '../domain/origin.ts'
import { isSiteKey } from '../domain/site.ts'

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
/** Requests per minute, as in the service's own settings. */
export const LIMIT_MAX = 1_000_000
/** Milliseconds, from 16 bits on slow devices to where visitors would leave. */
export const SOLVE_MS = { least: 20, most: 10_000, expects: 'an integer from 20 to 10000' } as const

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

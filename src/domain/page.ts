/**
 * What a token says about its visitor's page: the host, and the texts `action` and `cdata` that the page gave the widget.
 * /siteverify returns them, so a backend can refuse a token from another page or made for another purpose.
 *
 * Each part that is present is a line of its own: a letter, then the part. If the site allows one exact origin, the token needs no host,
 * because /siteverify then names the host of that origin.
 *
 *   hshop.example
 *   alogin
 *   cbasket-17
 */

import type { Solution } from '../protocol/wire.ts'
import { hostnameOf, type OriginList } from './origin.ts'

export interface Page {
  readonly host?: string | undefined
  readonly action?: string | undefined
  readonly cdata?: string | undefined
}

/** The longest name that DNS knows. A made-up origin may have a longer one, of which the token says nothing. */
const HOST_CHARACTERS_MAX = 253
export const ACTION_CHARACTERS_MAX = 100
export const CDATA_CHARACTERS_MAX = 255
/** Counts three letters and two line breaks. All parts are ASCII: hosts as URLs have them, texts by http/schemas.ts. */
const PAGE_BYTES_MAX = 3 + HOST_CHARACTERS_MAX + ACTION_CHARACTERS_MAX + CDATA_CHARACTERS_MAX + 2
/** The length of the longest `pageText`. */
export const PAGE_TEXT_MAX = Math.ceil((PAGE_BYTES_MAX * 4) / 3)

/**
 * @param origin already allowed by `origins`; empty if absent
 * @returns undefined if the token needs no page
 */
export function pageOf({ action, cdata }: Solution, origin: string, origins: OriginList): Page | undefined {
  const name = origins.onlyHostname === undefined ? hostnameOf(origin) : undefined
  const host = name !== undefined && name.length <= HOST_CHARACTERS_MAX ? name : undefined
  return (host ?? action ?? cdata) === undefined ? undefined : { host, action, cdata }
}

const LETTERS = { h: 'host', a: 'action', c: 'cdata' } as const

/** The page's lines in base64url. */
export function pageText(page: Page): string {
  const lines = Object.entries(LETTERS).flatMap(([letter, part]) =>
    page[part] === undefined ? [] : [letter + page[part]],
  )
  return Buffer.from(lines.join('\n'), 'latin1').toString('base64url')
}

export function readPage(text: string): Page {
  const lines = Buffer.from(text, 'base64url').toString('latin1').split('\n')
  const parts = lines.map(line => [LETTERS[line[0] as keyof typeof LETTERS], line.slice(1)])
  return Object.fromEntries(parts)
}

/**
 * What a token says about its visitor's page: the host, and the texts `action` and `cdata` that the page gave the widget.
 * /siteverify returns them, so a backend can refuse a token from another page or made for another purpose.
 *
 * A line for each part that is present: a letter, then the part.
 *
 *   hshop.example
 *   alogin
 *   cbasket-17
 *
 * With one exact origin the token needs no host. A long name is stored as a hash, to keep tokens short; the list of origins
 * resolves it, unless only a pattern allowed the host.
 */

import { hash } from 'node:crypto'
import type { Solution } from '../protocol/wire.ts'
import { hostnameOf, type OriginList } from './origin.ts'

export interface Page {
  /** A name, or `#` and its hash. */
  readonly host?: string | undefined
  readonly action?: string | undefined
  readonly cdata?: string | undefined
}

/** The longest name that is stored whole: with its letter 48 bytes, which are 64 characters of a token. */
const HOST_CHARACTERS_MAX = 47
const HASH_CHARACTERS = 16

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
  const hostname = origins.onlyHostname === undefined ? hostnameOf(origin) : undefined
  if (hostname === undefined && action === undefined && cdata === undefined) return undefined
  const host = hostname === undefined ? undefined : hostInToken(hostname)
  return { host, action, cdata }
}

function hostInToken(hostname: string): string {
  if (hostname.length <= HOST_CHARACTERS_MAX) return hostname
  return `#${hash('sha256', hostname, 'base64url').slice(0, HASH_CHARACTERS)}`
}

/** The name of the page's host; undefined if the token and the list do not tell. */
export function pageHostname(page: Page | undefined, origins: OriginList): string | undefined {
  const host = page?.host
  if (host === undefined) return origins.onlyHostname
  return host.startsWith('#') ? origins.hostnames.find(name => hostInToken(name) === host) : host
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

/**
 * What a token tells of the page where its visitor was: its host, and the texts `action` and `cdata` that the page gave the
 * widget. /siteverify returns them, so that a backend can refuse a token from another page or for another purpose.
 *
 * As text: a line for each part that is there, which is a letter and the part. No part has a line break.
 *
 *   hshop.example
 *   alogin
 *   cbasket-17
 *
 * The host is bound as a name. A number in the site's list of origins would be smaller, but the list may change before the
 * token is redeemed, and a list with patterns, or an empty one, has no such number. A site with one exact origin has no
 * other host: its tokens carry none, and cost nothing. A long name would make a token long, so its hash is bound. The list
 * resolves the hash, unless a pattern had allowed the host.
 */

import { hash } from 'node:crypto'
import type { Solution } from '../protocol/wire.ts'
import { hostnameOf, type OriginList } from './origin.ts'

export interface Page {
  /** A host's name, or `#` and a hash of it. */
  readonly host?: string | undefined
  readonly action?: string | undefined
  readonly cdata?: string | undefined
}

/** With the letter, 48 bytes, which are 64 characters of a token. */
const HOST_CHARACTERS_MAX = 47
const HASH_CHARACTERS = 16

export const ACTION_CHARACTERS_MAX = 100
export const CDATA_CHARACTERS_MAX = 255
/** Of a text with all three parts. */
export const PAGE_BYTES_MAX = 3 + HOST_CHARACTERS_MAX + ACTION_CHARACTERS_MAX + CDATA_CHARACTERS_MAX + 2

/**
 * What a token has to carry; undefined if nothing.
 *
 * @param origin the Origin header, which `origins` has allowed; empty if absent
 */
export function pageOf({ action, cdata }: Solution, origin: string, origins: OriginList): Page | undefined {
  const hostname = origins.onlyHostname === undefined ? hostnameOf(origin) : undefined
  if (hostname === undefined && action === undefined && cdata === undefined) return undefined
  const host = hostname === undefined ? undefined : boundHost(hostname)
  return { host, action, cdata }
}

function boundHost(hostname: string): string {
  if (hostname.length <= HOST_CHARACTERS_MAX) return hostname
  return `#${hash('sha256', hostname, 'base64url').slice(0, HASH_CHARACTERS)}`
}

/** The host's name; undefined if the token does not tell it. */
export function pageHostname(page: Page | undefined, origins: OriginList): string | undefined {
  const host = page?.host
  if (host === undefined) return origins.onlyHostname
  return host.startsWith('#') ? origins.hostnames.find(name => boundHost(name) === host) : host
}

const LETTERS = { h: 'host', a: 'action', c: 'cdata' } as const

/** Texts of pages with a host alone, which most are, by the host; and those pages by the text: 1 us less for each token. */
const REMEMBERED_MAX = 1000
const texts = new Map<string, string>()
const pages = new Map<string, Page>()

/** base64url of the text above. */
export function pageText(page: Page): string {
  const { host = '', action, cdata } = page
  const isHostAlone = action === undefined && cdata === undefined
  return remembered(texts, isHostAlone ? host : undefined, () => {
    const lines = Object.entries(LETTERS).flatMap(([letter, part]) =>
      page[part] === undefined ? [] : [letter + page[part]],
    )
    return Buffer.from(lines.join('\n')).toString('base64url')
  })
}

/** @param text from `pageText` */
export function readPage(text: string): Page {
  const isShort = text.length <= ((1 + HOST_CHARACTERS_MAX) * 4) / 3
  return remembered(pages, isShort ? text : undefined, () => {
    const lines = Buffer.from(text, 'base64url').toString('latin1').split('\n')
    return Object.fromEntries(lines.map(line => [LETTERS[line[0] as keyof typeof LETTERS], line.slice(1)]))
  })
}

/** @param key undefined: neither looked up nor kept */
function remembered<Value>(cache: Map<string, Value>, key: string | undefined, make: () => Value): Value {
  const found = key === undefined ? undefined : cache.get(key)
  if (found !== undefined) return found
  const made = make()
  if (key === undefined) return made
  if (cache.size >= REMEMBERED_MAX) cache.clear()
  cache.set(key, made)
  return made
}

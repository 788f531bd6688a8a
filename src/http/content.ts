/** Serves files and pages, with ETags (RFC 9110, 13.1.2) and the coding that the client prefers (12.5.3). */

import { createHash } from 'node:crypto'
import type { Work } from '../domain/endpoint.ts'
import type { Exchange } from './exchange.ts'
import type { HeaderList } from './replies.ts'
import type { ContentRequest } from './request-headers.ts'

export interface ContentRoute {
  /** May end with `/*`. */
  readonly path: string
  readonly methods: readonly ('get' | 'head' | 'post')[]
  /** Pages of any origin may add headers of their own to a request, as tracing agents do. CORS headers of the answer are `handle`'s. */
  readonly takesPreflight?: boolean
  /** Decides when a GET is refused under load; `new` if missing. */
  readonly work?: Work
  handle(exchange: Exchange, asked: ContentRequest): void
}

export type Coding = 'br' | 'gzip' | 'identity'

interface StaticFileOptions {
  readonly contentType: string
  /** The content, compressed in advance. One that is not shorter than the content itself is never sent. */
  readonly compressed?: Partial<Readonly<Record<Coding, Buffer>>>
  readonly headers?: HeaderList
}

interface Variant {
  readonly body: Buffer
  /** Strong, so each coding has its own (RFC 9110, 8.8.3.3). */
  readonly etag: string
  /** Sent with 200, not with 304. */
  readonly headers: HeaderList
}

const ETAG_CHARACTERS = 22

/** Answers with the file, in the form that the client prefers, or with 304. */
export type StaticFile = (exchange: Exchange, asked: ContentRequest, cacheControl: string) => void

export function staticFile(
  content: Buffer,
  { contentType, compressed = {}, headers = [] }: StaticFileOptions,
): StaticFile {
  const hash = createHash('sha256').update(content).digest('base64url').slice(0, ETAG_CHARACTERS)
  const type = ['Content-Type', contentType] as const
  const variants = new Map<Coding, Variant>()
  for (const coding of ['br', 'gzip'] as const) {
    const body = compressed[coding]
    if (body === undefined || body.length >= content.length) continue
    variants.set(coding, { body, etag: `"${hash}-${coding}"`, headers: [type, ['Content-Encoding', coding]] })
  }
  variants.set('identity', { body: content, etag: `"${hash}"`, headers: [type] })
  const codings = [...variants.keys()]
  const always: HeaderList = [['Vary', 'Accept-Encoding'], ['X-Content-Type-Options', 'nosniff'], ...headers]
  return (exchange, asked, cacheControl) => {
    const variant = variants.get(preferredCoding(asked.acceptEncoding, codings))!
    const { body, etag } = variant
    const shared: HeaderList = [['ETag', etag], ['Cache-Control', cacheControl], ...always]
    if (matchesEtag(asked.ifNoneMatch, etag))
      exchange.answer({ status: 304, body, headers: shared, hasOwnType: true }) // only the body's length is sent
    else exchange.answer({ status: 200, body, headers: [...variant.headers, ...shared], hasOwnType: true })
  }
}

/** A browser lists four. 16 KB of commas would take 2 ms. */
const CODINGS_MAX = 32
const WEIGHT = /^[ \t]*q=(0(?:\.\d{0,3})?|1(?:\.0{0,3})?)[ \t]*$/i

/**
 * Returns `identity` if none is accepted, or the header is empty: the RFC allows it, and 406 would help nobody.
 *
 * @param available shortest first, for clients without a preference
 */
export function preferredCoding(acceptEncoding: string, available: readonly Coding[]): Coding {
  if (acceptEncoding === '') return 'identity'
  const weights = new Map<string, number>()
  for (const entry of acceptEncoding.toLowerCase().split(',', CODINGS_MAX)) {
    const [coding = '', parameter] = entry.split(';')
    const weight = parameter === undefined ? 1 : Number(WEIGHT.exec(parameter)?.[1] ?? 0)
    weights.set(coding.trim().replace(/^x-gzip$/, 'gzip'), weight)
  }
  // The content as it is (identity) is acceptable even if it is not listed, but any other coding is preferred.
  const unlisted = weights.get('*')
  const weightOf = (coding: Coding) =>
    weights.get(coding) ?? unlisted ?? (coding === 'identity' ? Number.MIN_VALUE : 0)
  const best = available.toSorted((a, b) => weightOf(b) - weightOf(a))[0]!
  return weightOf(best) > 0 ? best : 'identity'
}

/** Compares weakly, as If-None-Match requires. A tag has quotes only at its ends, so it is found in a list as it stands. */
export function matchesEtag(ifNoneMatch: string, etag: string): boolean {
  return ifNoneMatch.trim() === '*' || ifNoneMatch.includes(etag)
}

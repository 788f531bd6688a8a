/** Serves files and pages: files have an ETag, and are compressed if the client accepts that. */

import { createHash } from 'node:crypto'
import type { Exchange } from './exchange.ts'
import { CODINGS, type Coding, matchesEtag, preferredCoding } from './negotiation.ts'
import type { HeaderList } from './replies.ts'
import type { ContentRequest } from './request-headers.ts'

export interface ContentRoute {
  /** May end with the wildcard `/*`. */
  readonly path: string
  /** Other methods get 405. */
  readonly methods: readonly ('get' | 'head' | 'post')[]
  handle(exchange: Exchange, asked: ContentRequest): void
}

export interface StaticFileOptions {
  readonly contentType: string
  /** The same content, compressed. A coding that is not shorter is not used. */
  readonly compressed?: Partial<Readonly<Record<Coding, Buffer>>>
  /** Headers in addition to those of every file. */
  readonly headers?: HeaderList
}

interface Variant {
  readonly body: Buffer
  /** A strong validator, so each coding has its own (RFC 9110, 8.8.3.3). */
  readonly etag: string
  /** Headers that describe the content, and are not sent with 304. */
  readonly headers: HeaderList
}

const ETAG_CHARACTERS = 22

/** A file in memory, with its codings. The answer is 200, or 304 if the client's copy is current. */
export class StaticFile {
  readonly #variants: Readonly<Partial<Record<Coding, Variant>>> & { readonly identity: Variant }
  readonly #codings: readonly Coding[]
  readonly #headers: HeaderList

  constructor(content: Buffer, { contentType, compressed = {}, headers = [] }: StaticFileOptions) {
    const hash = createHash('sha256').update(content).digest('base64url').slice(0, ETAG_CHARACTERS)
    const type = ['Content-Type', contentType] as const
    const variants: Partial<Record<Coding, Variant>> & { identity: Variant } = {
      identity: { body: content, etag: `"${hash}"`, headers: [type] },
    }
    for (const coding of ['br', 'gzip'] as const) {
      const body = compressed[coding]
      if (body === undefined || body.length >= content.length) continue
      variants[coding] = {
        body,
        etag: `"${hash}-${coding}"`,
        headers: [type, ['Content-Encoding', coding]],
      }
    }
    this.#variants = variants
    this.#codings = CODINGS.filter(coding => variants[coding] !== undefined)
    this.#headers = [['Vary', 'Accept-Encoding'], ['X-Content-Type-Options', 'nosniff'], ...headers]
  }

  answer(exchange: Exchange, asked: ContentRequest, cacheControl: string): void {
    const coding = preferredCoding(asked.acceptEncoding, this.#codings)
    const { body, etag, headers } = this.#variants[coding] ?? this.#variants.identity
    const shared: HeaderList = [['ETag', etag], ['Cache-Control', cacheControl], ...this.#headers]
    if (matchesEtag(asked.ifNoneMatch, etag)) exchange.answerContent({ status: 304, body, headers: shared })
    else exchange.answerContent({ status: 200, body, headers: [...headers, ...shared] })
  }
}

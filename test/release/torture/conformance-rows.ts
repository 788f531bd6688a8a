/**
 * Requests whose end servers may see in different places, and the result of each. They come from a visitor and from a trusted
 * proxy directly to powgate, and through nginx and HAProxy. The table of docs/evidence/odd-requests.md is generated from them
 * (test/docs.test.ts compares them).
 */

import { words } from '../../harness/values.ts'

/**
 * How a request reaches powgate. A trusted proxy's connection carries requests of several clients, so powgate refuses a second
 * length from there (src/http/request-headers.ts); from a visitor it could hide only a request of the visitor's own.
 */
export const WAYS = ['visitor', 'trusted', 'nginx', 'haproxy'] as const
export type Way = (typeof WAYS)[number]

/**
 * What happens to a request, and to its connection:
 *   accepted           answered as one request; the next one on the connection is answered too
 *   405                refused by its endpoint; the connection stays open
 *   400, closed        refused; the connection is closed, what follows is not answered
 *   closed             without an answer
 *   waits              neither answered nor closed: treated as unfinished, until the idle timeout
 *   422, 501, 502, 505 refused by a proxy, or (505) by uWebSockets.js before powgate sees it
 *   accepted, 405, ... more than one answer to what a strict parser treats as one request
 */
export type Fate = string

export interface Row {
  readonly about: string
  /** As latin1 text. */
  readonly bytes: string
  readonly fates: Readonly<Record<Way, Fate>>
}

export interface Section {
  readonly title: string
  readonly rows: readonly Row[]
}

/**
 * @param fates one for all `WAYS`; or three, the first for both ways directly to powgate ('ok | 400! | ok'); or four. `ok` is short
 * for accepted, `empty` for accepted without its body, and `!` for a connection that is closed afterwards
 */
function row(about: string, bytes: string, fates: string): Row {
  const long = fates.replaceAll('!', ', closed').replaceAll('ok', 'accepted')
  const stated = long.replaceAll('empty', 'accepted without its body').split(' | ')
  const [direct] = stated as [Fate]
  const ofProxies = stated.length === 1 ? [direct, direct] : stated.slice(-2)
  const [nginx, haproxy] = ofProxies as [Fate, Fate]
  const trusted = stated.length === 4 ? stated[1]! : direct
  return { about, bytes, fates: { visitor: direct, trusted, nginx, haproxy } }
}

const lines = (...all: readonly string[]) => `${all.join('\r\n')}\r\n\r\n`

/** Requests with this header are answered with 304: "accepted". */
const NOT_MODIFIED = 'If-None-Match: *'

const GET = 'GET /openapi.json HTTP/1.1'
/** @param more header lines */
const get = (...more: readonly string[]) => lines(GET, 'Host: powgate', NOT_MODIFIED, ...more)

/** Answered with 200 and an error code which shows that the whole body was read: "accepted". */
const FORM = 'secret=x&response=y' // 19 characters
const LENGTH = `Content-Length: ${FORM.length}`
const CHUNKED = 'Transfer-Encoding: chunked'
const LAST_CHUNK = '0\r\n\r\n'
const CHUNKS = `13\r\n${FORM}\r\n${LAST_CHUNK}` // 0x13 = 19, the length of the form

const post = (headers: readonly string[], body: string) =>
  lines(
    'POST /siteverify HTTP/1.1',
    'Host: powgate',
    'Content-Type: application/x-www-form-urlencoded',
    ...headers,
  ) + body

/** Rows of the form as it is (`form`), of the form in right chunks (`coded`), and of odd chunks under a right header (`chunks`). */
const form = (about: string, headers: readonly string[], fates: string) =>
  row(about, post(headers, FORM), fates)
const coded = (about: string, headers: readonly string[], fates: string) =>
  row(about, post(headers, CHUNKS), fates)
const chunks = (about: string, body: string, fates: string) => row(about, post([CHUNKED], body), fates)

/** A second request after the body, which some parsers see and others treat as a part of the body. */
const HIDDEN = get()
const hidden = (about: string, headers: readonly string[], fates: string, ownBody = LAST_CHUNK) =>
  row(about, post(headers, ownBody + HIDDEN), fates)
/** By these lengths the second request is a part of the body: behind the form, or behind an empty body's last chunk. */
const TOTAL = FORM.length + HIDDEN.length
const TOTAL_LENGTH = `Content-Length: ${TOTAL}`
const CHUNKS_TOTAL = `Content-Length: ${LAST_CHUNK.length + HIDDEN.length}`
/** A right length beside a coding that only some parsers see. */
const oddCoding = (about: string, coding: string, fates: string) =>
  hidden(about, [CHUNKS_TOTAL, coding], fates)

const LENGTHS: readonly Row[] = [
  form('a length', [LENGTH], 'ok'),
  form('the same length twice', [LENGTH, LENGTH], 'ok | 400! | 400! | ok'),
  hidden('two lengths, the first right', [LENGTH, TOTAL_LENGTH], 'ok, ok | closed | 400! | 400!', FORM),
  hidden('two lengths, the last right', [TOTAL_LENGTH, LENGTH], 'ok | 400! | 400! | 400!', FORM),
  form('a list of equal lengths', ['Content-Length: 19, 19'], '400! | 400! | ok'),
  hidden('a list of lengths', [`Content-Length: 19, ${TOTAL}`], '400!', FORM),
  ...words('+19 -19 0x13 19.0 "19" 100000000000000000019 18446744073709551635').map(length =>
    form(`a length of \`${length}\``, [`Content-Length: ${length}`], '400!'),
  ),
  form('a length with a space in it', ['Content-Length: 1 9'], '400!'),
  form('a length with leading zeros', ['Content-Length: 0019'], 'ok'),
  form('a length between tabs', ['Content-Length:\t19\t'], 'ok | 400! | ok'),
  row('an empty length', post(['Content-Length: '], ''), 'empty | 400! | 400!'),
  row('a length and no body at GET', get('Content-Length: 0'), 'ok'),
  row('a body at GET', `${get('Content-Length: 3')}abc`, 'ok'),
  row('no length, no body', post([], ''), 'empty'),
  form('no length, and a body', [], 'empty, 405, waits | empty, 400! | empty, 400!'),
  row(
    'more body than its length',
    post([LENGTH], `${FORM}zzz`),
    'ok, 405, waits | ok, 400! | ok, 405, waits',
  ),
  form('less body than its length', ['Content-Length: 500'], 'waits'),
]

const CODINGS: readonly Row[] = [
  coded('chunks', [CHUNKED], 'ok! | ok | ok'),
  hidden('a length, then chunks', [CHUNKS_TOTAL, CHUNKED], '400! | 400! | empty!'),
  hidden('chunks, then a length', [CHUNKED, CHUNKS_TOTAL], '400! | 400! | empty!'),
  coded('chunks twice', [CHUNKED, CHUNKED], 'ok! | 400! | 400! | 400!'),
  coded('`Transfer-Encoding: CHUNKED`', ['Transfer-Encoding: CHUNKED'], 'ok! | ok | ok'),
  coded('a coding that is none', ['Transfer-Encoding: xchunked'], '400! | 501! | 400!'),
  coded('`identity`', ['Transfer-Encoding: identity'], '400! | 501! | 400!'),
  coded('`gzip, chunked`', ['Transfer-Encoding: gzip, chunked'], '400! | 501! | 422!'),
  coded('`chunked, identity`', ['Transfer-Encoding: chunked, identity'], '400! | 501! | 400!'),
  coded('`"chunked"`, in quotes', ['Transfer-Encoding: "chunked"'], '400! | 501! | 400!'),
  coded('`chunked;q=1`', ['Transfer-Encoding: chunked;q=1'], '400! | 501! | 400!'),
  row('an empty coding', post(['Transfer-Encoding: '], ''), 'empty | 400! | 501! | 400!'),
  hidden('an empty coding, and a body', ['Transfer-Encoding: '], 'empty, ok | closed | 501! | 400!', ''),
  coded('a coding in the second line', ['Transfer-Encoding: identity', CHUNKED], '400! | 400! | 422!'),
  coded('a coding after a tab', ['Transfer-Encoding:\tchunked'], 'ok! | 501! | ok'),
  oddCoding('a coding after a vertical tab', 'Transfer-Encoding: \x0bchunked', 'waits | 501! | 400!'),
  oddCoding('a coding with a space before the colon', 'Transfer-Encoding : chunked', 'waits | 400! | 400!'),
  oddCoding('a folded coding', 'Transfer-Encoding:\r\n chunked', 'waits | 400! | empty!'),
  oddCoding('a coding after a lone line feed', 'A: b\nTransfer-Encoding: chunked', 'waits | 400! | empty!'),
  form('a length and `Transfer_Encoding`', [LENGTH, 'Transfer_Encoding: chunked'], 'ok'),
  row('chunks at GET', get(CHUNKED) + LAST_CHUNK, 'ok | 400! | ok | 400'),
  row('chunks at GET, by another name', get('Transfer-Encoding: x') + LAST_CHUNK, 'ok | 400! | 501! | 400!'),
]

/** A parser without trailers skips two bytes after the last chunk's line, as if `aa` were its CRLF, and then reads a request. */
const TRAILER = `0\r\n${lines('aa: /openapi.json HTTP/1.1', 'Host: powgate', NOT_MODIFIED)}`

const CHUNK_SIZES: readonly Row[] = [
  chunks('a size with leading zeros', `00013\r\n${FORM}\r\n0\r\n\r\n`, 'ok! | ok | ok'),
  chunks('a size with an extension', `13;a=b\r\n${FORM}\r\n0\r\n\r\n`, 'waits | ok | ok'),
  chunks('a size with a space behind', `13 \r\n${FORM}\r\n0\r\n\r\n`, 'ok! | ok | ok'),
  chunks('a size with `0x` before', `0x13\r\n${FORM}\r\n0\r\n\r\n`, '400!'),
  chunks('a negative size', `-13\r\n${FORM}\r\n0\r\n\r\n`, '400!'),
  chunks('an empty size', `\r\n${FORM}\r\n0\r\n\r\n`, 'empty! | 400! | 400!'),
  chunks('a size of 17 digits', `10000000000000013\r\n${FORM}\r\n0\r\n\r\n`, '400!'),
  chunks('a size that ends in a lone line feed', `13\n${FORM}\r\n0\r\n\r\n`, 'ok! | ok | ok'),
  chunks('a chunk that ends in other bytes', `13\r\n${FORM}XX0\r\n\r\n`, 'ok! | 400! | 400!'),
  chunks('chunks with line feeds only', `13\n${FORM}\n0\n\n`, 'ok! | ok | ok'),
  chunks('a trailer', `13\r\n${FORM}\r\n0\r\nA: b\r\n\r\n`, '505! | ok | 505!'),
  chunks('a trailer with a length', `13\r\n${FORM}\r\n0\r\nContent-Length: 5\r\n\r\n`, '505! | ok | 505!'),
  chunks('a trailer that looks like a request', `13\r\n${FORM}\r\n${TRAILER}`, 'closed | ok | 502'),
  chunks('a trailer that looks like a request, no body', TRAILER, 'closed | empty | 502'),
  row('a trailer that looks like a request, at GET', get(CHUNKED) + TRAILER, 'ok, 405 | closed | ok | 502'),
  chunks('no last chunk', `13\r\n${FORM}\r\n`, '400!'),
]

/** Requests that could hide another one: two servers may see their end in two places. */
export const SECTIONS: readonly Section[] = [
  { title: 'Content-Length', rows: LENGTHS },
  { title: 'Transfer-Encoding', rows: CODINGS },
  { title: 'Chunks', rows: CHUNK_SIZES },
]

export const ROWS: readonly Row[] = SECTIONS.flatMap(({ rows }) => rows)

const HEADINGS = ['request', 'powgate', 'behind nginx', 'behind HAProxy']
/** What stands below the headings. */
const SHOWN = ['trusted', 'nginx', 'haproxy'] as const

/** Whether powgate takes a request from a trusted proxy, or waits for its end, where a proxy does otherwise. */
const isLeftToProxies = ({ fates }: Row) =>
  /^(accepted|waits)/.test(fates.trusted) && SHOWN.some(way => fates[way] !== fates.trusted)

/** Markdown, of what is left to proxies; requests with the same results everywhere share a line. */
export function conformanceTable(): string {
  const asLine = (cells: readonly string[]) => `| ${cells.join(' | ')} |`
  const table = [HEADINGS, HEADINGS.map(() => '---')].map(asLine)
  for (const { title, rows } of SECTIONS) {
    table.push(asLine([`**${title}**`, '', '', '']))
    const byFates = new Map<string, string[]>()
    for (const { about, fates } of rows.filter(isLeftToProxies)) {
      const key = SHOWN.map(way => fates[way]).join(' | ')
      byFates.set(key, [...(byFates.get(key) ?? []), about])
    }
    for (const [fates, abouts] of byFates) table.push(asLine([abouts.join('; '), fates]))
  }
  return table.join('\n')
}

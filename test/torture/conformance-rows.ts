/**
 * Requests that servers parse in different ways, and the result of each. They come from a visitor and from a trusted proxy
 * directly to powgate, and through nginx and HAProxy. The table of docs/measurements.md is generated from this one
 * (test/docs.test.ts compares them).
 */

/** How a request reaches powgate. */
export const WAYS = ['visitor', 'trusted', 'nginx', 'haproxy'] as const
export type Way = (typeof WAYS)[number]

/**
 * What happens to a request, and to its connection:
 *   accepted           answered as one request; the next one on the connection is answered too
 *   405                refused by its endpoint; the connection stays open
 *   400, closed        refused; the connection is closed, what follows is not answered
 *   closed             without an answer
 *   waits              neither answered nor closed: treated as unfinished, until the idle timeout
 *   accepted, 405, ... more than one answer to what a strict parser treats as one request
 */
export type Fate = string

export interface Row {
  readonly about: string
  /** As latin1 text. */
  readonly bytes: string
  /** The answer to HEAD has a Content-Length, but no body. */
  readonly isHead: boolean
  readonly fates: Readonly<Record<Way, Fate>>
}

export interface Section {
  readonly title: string
  readonly rows: readonly Row[]
}

/**
 * @param fates in the order of `WAYS`, or one for all of them; `ok` is short for accepted, `empty` for accepted without its
 * body, and `!` for a connection that is closed afterwards
 */
function row(about: string, bytes: string, fates: string): Row {
  const long = fates.replaceAll('!', ', closed').replaceAll('ok', 'accepted')
  const [visitor = '', trusted = visitor, nginx = visitor, haproxy = visitor] = long
    .replaceAll('empty', 'accepted without its body')
    .split(' | ')
  return { about, bytes, isHead: bytes.startsWith('HEAD'), fates: { visitor, trusted, nginx, haproxy } }
}

const lines = (...all: readonly string[]) => `${all.join('\r\n')}\r\n\r\n`

/** Requests with this header are answered with 304: "accepted". */
const NOT_MODIFIED = 'If-None-Match: *'

/** @param more header lines */
const get = (...more: readonly string[]) =>
  lines('GET /openapi.json HTTP/1.1', 'Host: powgate', NOT_MODIFIED, ...more)

const requestLine = (line: string) => lines(line, 'Host: powgate', NOT_MODIFIED)

/** Answered with 200 and an error code which shows that the whole body was read: "accepted". */
const FORM = 'secret=x&response=y'
const LENGTH = `Content-Length: ${FORM.length}`
const CHUNKED = 'Transfer-Encoding: chunked'
const CHUNKS = `13\r\n${FORM}\r\n0\r\n\r\n`

const post = (headers: readonly string[], body: string) =>
  lines(
    'POST /siteverify HTTP/1.1',
    'Host: powgate',
    'Content-Type: application/x-www-form-urlencoded',
    ...headers,
  ) + body

const chunked = (body: string) => post([CHUNKED], body)

/** A second request after the body, which some parsers see and others treat as a part of the body. */
const HIDDEN = get()
const hiding = (headers: readonly string[], before: string) => post(headers, before + HIDDEN)
const TOTAL = FORM.length + HIDDEN.length
const LAST_CHUNK = '0\r\n\r\n'
const CHUNKS_TOTAL = `Content-Length: ${LAST_CHUNK.length + HIDDEN.length}`

const LENGTHS: readonly Row[] = [
  row('a length', post([LENGTH], FORM), 'ok'),
  row('the same length twice', post([LENGTH, LENGTH], FORM), 'ok | 400! | 400! | ok'),
  row(
    'two lengths, the first right',
    hiding([LENGTH, `Content-Length: ${TOTAL}`], FORM),
    'ok, ok | closed | 400! | 400!',
  ),
  row(
    'two lengths, the last right',
    hiding([`Content-Length: ${TOTAL}`, LENGTH], FORM),
    'ok | 400! | 400! | 400!',
  ),
  row('a list of equal lengths', post(['Content-Length: 19, 19'], FORM), '400! | 400! | 400! | ok'),
  row('a list of lengths', hiding([`Content-Length: 19, ${TOTAL}`], FORM), '400!'),
  row('a length with a plus sign', post(['Content-Length: +19'], FORM), '400!'),
  row('a length with a minus sign', post(['Content-Length: -19'], FORM), '400!'),
  row('a length in hexadecimal', post(['Content-Length: 0x13'], FORM), '400!'),
  row('a length as a fraction', post(['Content-Length: 19.0'], FORM), '400!'),
  row('a length in quotes', post(['Content-Length: "19"'], FORM), '400!'),
  row('a length with a space inside', post(['Content-Length: 1 9'], FORM), '400!'),
  row('a length with leading zeros', post(['Content-Length: 0019'], FORM), 'ok'),
  row('a length between tabs', post(['Content-Length:\t19\t'], FORM), 'ok | ok | 400! | ok'),
  row('an empty length', post(['Content-Length: '], ''), 'empty | empty | 400! | 400!'),
  row('a length of 21 digits', post(['Content-Length: 100000000000000000019'], FORM), '400!'),
  row('a length of 2^64 + 19', post(['Content-Length: 18446744073709551635'], FORM), '400!'),
  row('a length and no body at GET', get('Content-Length: 0'), 'ok'),
  row('a body at GET', `${get('Content-Length: 3')}abc`, 'ok'),
  row('no length, no body', post([], ''), 'empty'),
  row(
    'no length, and a body',
    post([], FORM),
    'empty, 405, waits | empty, 405, waits | empty, 400! | empty, 400!',
  ),
  row(
    'more body than its length',
    post([LENGTH], `${FORM}zzz`),
    'ok, 405, waits | ok, 405, waits | ok, 400! | ok, 405, waits',
  ),
  row('less body than its length', post(['Content-Length: 500'], FORM), 'waits'),
]

const CODINGS: readonly Row[] = [
  row('chunks', chunked(CHUNKS), 'ok! | ok! | ok | ok'),
  row('a length, then chunks', hiding([CHUNKS_TOTAL, CHUNKED], LAST_CHUNK), '400! | 400! | 400! | empty!'),
  row('chunks, then a length', hiding([CHUNKED, CHUNKS_TOTAL], LAST_CHUNK), '400! | 400! | 400! | empty!'),
  row('chunks twice', post([CHUNKED, CHUNKED], CHUNKS), 'ok! | 400! | 400! | 400!'),
  row('`Transfer-Encoding: CHUNKED`', post(['Transfer-Encoding: CHUNKED'], CHUNKS), 'ok! | ok! | ok | ok'),
  row('a coding that is none', post(['Transfer-Encoding: xchunked'], CHUNKS), '400! | 400! | 501! | 400!'),
  row('`identity`', post(['Transfer-Encoding: identity'], CHUNKS), '400! | 400! | 501! | 400!'),
  row('`gzip, chunked`', post(['Transfer-Encoding: gzip, chunked'], CHUNKS), '400! | 400! | 501! | 422!'),
  row(
    '`chunked, identity`',
    post(['Transfer-Encoding: chunked, identity'], CHUNKS),
    '400! | 400! | 501! | 400!',
  ),
  row('`"chunked"`, in quotes', post(['Transfer-Encoding: "chunked"'], CHUNKS), '400! | 400! | 501! | 400!'),
  row('`chunked;q=1`', post(['Transfer-Encoding: chunked;q=1'], CHUNKS), '400! | 400! | 501! | 400!'),
  row('an empty coding', post(['Transfer-Encoding: '], ''), 'empty | 400! | 501! | 400!'),
  row('an empty coding, and a body', hiding(['Transfer-Encoding: '], ''), 'empty, ok | closed | 501! | 400!'),
  row(
    'a coding in the second line',
    post(['Transfer-Encoding: identity', CHUNKED], CHUNKS),
    '400! | 400! | 400! | 422!',
  ),
  row('a coding after a tab', post(['Transfer-Encoding:\tchunked'], CHUNKS), 'ok! | ok! | 501! | ok'),
  row(
    'a coding after a vertical tab',
    hiding([CHUNKS_TOTAL, 'Transfer-Encoding: \x0bchunked'], LAST_CHUNK),
    'waits | waits | 501! | 400!',
  ),
  row(
    'a coding with a space before the colon',
    hiding([CHUNKS_TOTAL, 'Transfer-Encoding : chunked'], LAST_CHUNK),
    'waits | waits | 400! | 400!',
  ),
  row(
    'a folded coding',
    hiding([CHUNKS_TOTAL, 'Transfer-Encoding:', ' chunked'], LAST_CHUNK),
    'waits | waits | 400! | empty!',
  ),
  row(
    'a coding after a lone line feed',
    hiding([CHUNKS_TOTAL, 'A: b\nTransfer-Encoding: chunked'], LAST_CHUNK),
    'waits | waits | 400! | empty!',
  ),
  row('a length and `Transfer_Encoding`', post([LENGTH, 'Transfer_Encoding: chunked'], FORM), 'ok'),
  row('chunks at GET', get(CHUNKED) + LAST_CHUNK, 'ok | 400! | ok | 400'),
  row(
    'chunks at GET, by another name',
    `${get('Transfer-Encoding: x')}${LAST_CHUNK}`,
    'ok | 400! | 501! | 400!',
  ),
]

/** A parser that does not support trailers ends the body after two bytes, and treats the rest as the next request. */
const TRAILER = lines('aa: /openapi.json HTTP/1.1', 'Host: powgate', NOT_MODIFIED)

const CHUNK_SIZES: readonly Row[] = [
  row('a size with leading zeros', chunked(`00013\r\n${FORM}\r\n0\r\n\r\n`), 'ok! | ok! | ok | ok'),
  row('a size with an extension', chunked(`13;a=b\r\n${FORM}\r\n0\r\n\r\n`), 'waits | waits | ok | ok'),
  row('a size with a space behind', chunked(`13 \r\n${FORM}\r\n0\r\n\r\n`), 'ok! | ok! | ok | ok'),
  row('a size with `0x` before', chunked(`0x13\r\n${FORM}\r\n0\r\n\r\n`), '400!'),
  row('a negative size', chunked(`-13\r\n${FORM}\r\n0\r\n\r\n`), '400!'),
  row('an empty size', chunked(`\r\n${FORM}\r\n0\r\n\r\n`), 'empty! | empty! | 400! | 400!'),
  row('a size of 17 digits', chunked(`10000000000000013\r\n${FORM}\r\n0\r\n\r\n`), '400!'),
  row('a size that ends in a lone line feed', chunked(`13\n${FORM}\r\n0\r\n\r\n`), 'ok! | ok! | ok | ok'),
  row('a chunk that ends in other bytes', chunked(`13\r\n${FORM}XX0\r\n\r\n`), 'ok! | ok! | 400! | 400!'),
  row('chunks with line feeds only', chunked(`13\n${FORM}\n0\n\n`), 'ok! | ok! | ok | ok'),
  row('a trailer', chunked(`13\r\n${FORM}\r\n0\r\nA: b\r\n\r\n`), '505! | 505! | ok | 505!'),
  row(
    'a trailer with a length',
    chunked(`13\r\n${FORM}\r\n0\r\nContent-Length: 5\r\n\r\n`),
    '505! | 505! | ok | 505!',
  ),
  row(
    'a trailer that looks like a request',
    chunked(`13\r\n${FORM}\r\n0\r\n${TRAILER}`),
    'closed | closed | ok | 502',
  ),
  row(
    'a trailer that looks like a request, no body',
    chunked(`0\r\n${TRAILER}`),
    'closed | closed | empty | 502',
  ),
  row(
    'a trailer that looks like a request, at GET',
    `${get(CHUNKED)}0\r\n${TRAILER}`,
    'ok, 405 | closed | ok | 502',
  ),
  row('no last chunk', chunked(`13\r\n${FORM}\r\n`), '400!'),
]

const HEADERS: readonly Row[] = [
  row('a folded line', get('A: b', ' c'), 'waits | waits | 400! | ok'),
  row('a folded length', post(['Content-Length:', ' 19'], FORM), 'waits | waits | 400! | ok'),
  row(
    'a folded first line',
    lines('GET /openapi.json HTTP/1.1', ' A: b', 'Host: powgate', NOT_MODIFIED),
    'waits | waits | 400! | 400!',
  ),
  row('a lone line feed between lines', get('A: b\nC: d'), 'waits | waits | ok | ok'),
  row('line feeds only', get().replaceAll('\r\n', '\n'), '505! | 505! | ok | ok'),
  row('a lone carriage return in a value', get('A: b\rC: d'), 'waits | waits | 400! | 400!'),
  row('a space before the colon', get('A : b'), 'waits | waits | 400! | 400!'),
  row(
    'a length with a space before the colon',
    post(['Content-Length : 19'], FORM),
    'waits | waits | 400! | 400!',
  ),
  row('a tab before the colon', get('A\t: b'), 'waits | waits | 400! | 400!'),
  row('a line without a colon', get('A'), 'waits | waits | ok | 400!'),
  row('an empty name', get(': b'), 'ok | ok | 400! | 400!'),
  row('a name with a space inside', get('A b: c'), 'waits | waits | 400! | 400!'),
  row('a name with a slash', get('A/b: c'), 'waits | waits | ok | 400!'),
  row('a name in brackets', get('(A): b'), 'waits | waits | ok | 400!'),
  row('a name with an umlaut', get('\xc4: b'), 'waits | waits | ok | 400!'),
  row('NUL in a name', get('A\0b: c'), 'waits | waits | 400! | 400!'),
  row('NUL in a value', get('A: b\0c'), 'waits | waits | 400! | waits'),
  row('a control byte in a value', get('A: b\x01c'), 'waits'),
  row('DEL in a value', get('A: b\x7fc'), 'ok'),
  row('bytes above 127 in a value', get('A: \xff\xfe'), 'ok'),
  row('a value between tabs', get('A:\tb\t'), 'ok'),
  row('an empty value', get('A:'), 'ok'),
  row('95 lines', get(...Array.from({ length: 92 }, (_, index) => `A${index}: b`)), 'ok'),
  row(
    '120 lines',
    get(...Array.from({ length: 117 }, (_, index) => `A${index}: b`)),
    '431! | 431! | 431 | 400!',
  ),
  row('a header block of 3,900 bytes', get(`A: ${'b'.repeat(3800)}`), 'ok'),
  row('a header block of 6,000 bytes', get(`A: ${'b'.repeat(5900)}`), '431! | 431! | 431 | 431!'),
  row('a header block of 40,000 bytes', get(`A: ${'b'.repeat(39_900)}`), '431! | 431! | 400! | 400!'),
  row('no Host', lines('GET /openapi.json HTTP/1.1', NOT_MODIFIED), '400!'),
  row('no header at all', lines('GET /openapi.json HTTP/1.1'), 'waits | waits | 400! | 400!'),
  row('two Hosts', get('Host: other'), 'ok | ok | 400! | 400!'),
  row('an empty Host', lines('GET /openapi.json HTTP/1.1', 'Host:', NOT_MODIFIED), 'ok | ok | 400! | ok'),
  row(
    'a Host with a path',
    lines('GET /openapi.json HTTP/1.1', 'Host: a/b@c', NOT_MODIFIED),
    'ok | ok | 400! | ok',
  ),
  row('`Expect: 100-continue`', post([LENGTH, 'Expect: 100-continue'], FORM), 'ok'),
  row('another `Expect`', get('Expect: 200-ok'), 'ok'),
  row(
    '`Upgrade: websocket`',
    get(
      'Upgrade: websocket',
      'Connection: Upgrade',
      'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
      'Sec-WebSocket-Version: 13',
    ),
    'ok',
  ),
  row(
    '`Upgrade: h2c`',
    get('Upgrade: h2c', 'Connection: Upgrade, HTTP2-Settings', 'HTTP2-Settings: AAMAAABkAAQAAP__'),
    'ok',
  ),
  row('`Connection: close`', get('Connection: close'), 'ok!'),
  row('`Connection` that names the length', post([LENGTH, 'Connection: Content-Length'], FORM), 'ok'),
]

const REQUEST_LINES: readonly Row[] = [
  row('absolute form', requestLine('GET http://powgate/openapi.json HTTP/1.1'), '505! | 505! | ok | 505!'),
  row('authority form', requestLine('GET powgate:80 HTTP/1.1'), '505! | 505! | 400! | 400!'),
  row('asterisk form', requestLine('OPTIONS * HTTP/1.1'), '505! | 505! | 400! | 505!'),
  row('CONNECT', requestLine('CONNECT powgate:80 HTTP/1.1'), '505! | 505! | 400! | 505!'),
  row('TRACE', requestLine('TRACE /openapi.json HTTP/1.1'), '405 | 405 | 405! | 405'),
  row('HEAD', requestLine('HEAD /openapi.json HTTP/1.1').replace('*', '"x"'), '200'),
  row(
    'HEAD with a body',
    `${lines('HEAD /challenge HTTP/1.1', 'Host: powgate', 'Content-Length: 3')}abc`,
    '405',
  ),
  row('a method in lower case', requestLine('get /openapi.json HTTP/1.1'), '405 | 405 | 400! | 405'),
  row('a method that nobody knows', requestLine('BREW /openapi.json HTTP/1.1'), '405'),
  row('a method with other characters', requestLine('G@T /openapi.json HTTP/1.1'), '405 | 405 | 400! | 400!'),
  row('two spaces before the target', requestLine('GET  /openapi.json HTTP/1.1'), '505! | 505! | ok | ok'),
  row('two spaces behind the target', requestLine('GET /openapi.json  HTTP/1.1'), '505! | 505! | ok | ok'),
  row('a tab before the target', requestLine('GET\t/openapi.json HTTP/1.1'), '505! | 505! | 400! | ok'),
  row('a space before the method', requestLine(' GET /openapi.json HTTP/1.1'), '505! | 505! | 400! | 400!'),
  row('an empty line before the method', `\r\n${get()}`, 'waits | waits | ok | ok'),
  row('a space behind the version', requestLine('GET /openapi.json HTTP/1.1 '), '505! | 505! | ok | 400!'),
  row('a target without a slash', requestLine('GET openapi.json HTTP/1.1'), '505! | 505! | 400! | 400!'),
  row('a target with a space', requestLine('GET /openapi .json HTTP/1.1'), '505! | 505! | 400! | 400!'),
  row('a query', requestLine('GET /openapi.json?a=b HTTP/1.1'), 'ok'),
  row('a fragment', requestLine('GET /openapi.json#a HTTP/1.1'), '404 | 404 | 404 | 400!'),
  row('`%00` in the path', requestLine('GET /openapi.json%00 HTTP/1.1'), '404 | 404 | 400! | 404'),
  row('NUL in the path', requestLine('GET /openapi\0.json HTTP/1.1'), '505! | 505! | 400! | 400!'),
  row('an encoded slash', requestLine('GET /%2fopenapi.json HTTP/1.1'), '404'),
  row('an encoded letter', requestLine('GET /%6fpenapi.json HTTP/1.1'), '404'),
  row('two slashes', requestLine('GET //openapi.json HTTP/1.1'), '404'),
  row('`/./`', requestLine('GET /./openapi.json HTTP/1.1'), '404'),
  row('`/../` above the root', requestLine('GET /../openapi.json HTTP/1.1'), '404 | 404 | 400! | 404'),
  row('bytes above 127 in the path', requestLine('GET /\xff\xfe HTTP/1.1'), '404 | 404 | 404 | 400!'),
  row('a path of 3,000 bytes', requestLine(`GET /${'a'.repeat(3000)} HTTP/1.1`), '404'),
  row('a path of 9,000 bytes', requestLine(`GET /${'a'.repeat(9000)} HTTP/1.1`), '431! | 431! | 414! | 431!'),
  row('HTTP/0.9', 'GET /openapi.json\r\n', 'waits | waits | an answer that is not HTTP/1, closed | 400!'),
  row('HTTP/1.0', requestLine('GET /openapi.json HTTP/1.0'), '505! | 505! | ok! | 505!'),
  row(
    'HTTP/1.0 with keep-alive',
    lines('GET /openapi.json HTTP/1.0', 'Host: a', NOT_MODIFIED, 'Connection: keep-alive'),
    '505! | 505! | ok | 505!',
  ),
  row(
    'HTTP/1.0 with chunks',
    lines('POST /siteverify HTTP/1.0', 'Host: a', CHUNKED) + CHUNKS,
    '505! | 505! | 400! | 505!',
  ),
  row('HTTP/1.2', requestLine('GET /openapi.json HTTP/1.2'), '505! | 505! | ok | ok'),
  row('HTTP/2.0', requestLine('GET /openapi.json HTTP/2.0'), '505! | 505! | 505! | ok'),
  row('http/1.1 in lower case', requestLine('GET /openapi.json http/1.1'), '505! | 505! | 400! | 400!'),
  row(
    'the preface of HTTP/2',
    'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
    '505! | 505! | 400! | an answer that is not HTTP/1, closed',
  ),
  row('a TLS greeting', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n', '505! | 505! | 400! | 400!'),
  row('a PROXY line', `PROXY TCP4 203.0.113.9 127.0.0.1 1 2\r\n${get()}`, '505! | 505! | 400! | 400!'),
]

const SEQUENCES: readonly Row[] = [
  row('two requests in one segment', get() + get(), 'ok, ok'),
  row('a form and a request in one segment', post([LENGTH], FORM) + get(), 'ok, ok'),
  row('a line break behind a form', post([LENGTH], `${FORM}\r\n`), 'ok, waits | ok, waits | ok | ok'),
]

export const SECTIONS: readonly Section[] = [
  { title: 'Content-Length', rows: LENGTHS },
  { title: 'Transfer-Encoding', rows: CODINGS },
  { title: 'Chunks', rows: CHUNK_SIZES },
  { title: 'Header lines', rows: HEADERS },
  { title: 'Request line', rows: REQUEST_LINES },
  { title: 'Requests that follow each other', rows: SEQUENCES },
]

const HEADINGS = [
  ...['request', 'powgate, from a visitor', 'powgate, from a trusted proxy'],
  ...['behind nginx', 'behind HAProxy'],
]

/** Markdown; requests with the same results everywhere share a line. */
export function conformanceTable(): string {
  const asLine = (cells: readonly string[]) => `| ${cells.join(' | ')} |`
  const table = [HEADINGS, HEADINGS.map(() => '---')].map(asLine)
  for (const { title, rows } of SECTIONS) {
    table.push(asLine([`**${title}**`, '', '', '', '']))
    const byFates = new Map<string, string[]>()
    for (const { about, fates } of rows) {
      const key = WAYS.map(way => fates[way]).join(' | ')
      byFates.set(key, [...(byFates.get(key) ?? []), about])
    }
    for (const [fates, abouts] of byFates) table.push(asLine([abouts.join('; '), fates]))
  }
  return table.join('\n')
}

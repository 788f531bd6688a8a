/**
 * Requests that servers parse in different ways, and the result of each. They come from a visitor and from a trusted proxy
 * directly to powgate, and through nginx and HAProxy. The table of docs/evidence/odd-requests.md is
 * generated from the sections about lengths (test/docs.test.ts compares them).
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
  /** After so many bytes, the first segment ends. */
  readonly firstBytes?: number
  readonly fates: Readonly<Record<Way, Fate>>
}

export interface Section {
  readonly title: string
  readonly rows: readonly Row[]
}

/**
 * @param fates one for each of `WAYS`; or three, the first for both ways directly to powgate; or one for all. `ok` is short for
 * accepted, `empty` for accepted without its body, and `!` for a connection that is closed afterwards
 */
function row(about: string, bytes: string, fates: string): Row {
  const long = fates.replaceAll('!', ', closed').replaceAll('ok', 'accepted')
  const all = long.replaceAll('empty', 'accepted without its body').split(' | ')
  const direct = all[0]!
  const [trusted = direct, nginx = direct, haproxy = direct] =
    all.length === 4 ? all.slice(1) : [direct, ...all.slice(1)]
  return { about, bytes, fates: { visitor: direct, trusted, nginx, haproxy } }
}

const lines = (...all: readonly string[]) => `${all.join('\r\n')}\r\n\r\n`

/** Requests with this header are answered with 304: "accepted". */
const NOT_MODIFIED = 'If-None-Match: *'

const GET = 'GET /openapi.json HTTP/1.1'
/** @param more header lines */
const get = (...more: readonly string[]) => lines(GET, 'Host: powgate', NOT_MODIFIED, ...more)

const requestLine = (line: string) => lines(line, 'Host: powgate', NOT_MODIFIED)

const header = (about: string, more: readonly string[], fates: string) => row(about, get(...more), fates)
const line = (about: string, text: string, fates: string) => row(about, requestLine(text), fates)
const cut = (about: string, first: string, fates: string) => ({
  ...row(about, get(), fates),
  firstBytes: first.length,
})

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

const form = (about: string, headers: readonly string[], fates: string) =>
  row(about, post(headers, FORM), fates)
const coded = (about: string, headers: readonly string[], fates: string) =>
  row(about, post(headers, CHUNKS), fates)
const chunks = (about: string, body: string, fates: string) => row(about, post([CHUNKED], body), fates)

/** A second request after the body, which some parsers see and others treat as a part of the body. */
const HIDDEN = get()
const hidden = (about: string, headers: readonly string[], fates: string, before = LAST_CHUNK) =>
  row(about, post(headers, before + HIDDEN), fates)
const TOTAL = FORM.length + HIDDEN.length
const LAST_CHUNK = '0\r\n\r\n'
const CHUNKS_TOTAL = `Content-Length: ${LAST_CHUNK.length + HIDDEN.length}`

const LENGTHS: readonly Row[] = [
  form('a length', [LENGTH], 'ok'),
  form('the same length twice', [LENGTH, LENGTH], 'ok | 400! | 400! | ok'),
  hidden(
    'two lengths, the first right',
    [LENGTH, `Content-Length: ${TOTAL}`],
    'ok, ok | closed | 400! | 400!',
    FORM,
  ),
  hidden(
    'two lengths, the last right',
    [`Content-Length: ${TOTAL}`, LENGTH],
    'ok | 400! | 400! | 400!',
    FORM,
  ),
  form('a list of equal lengths', ['Content-Length: 19, 19'], '400! | 400! | ok'),
  hidden('a list of lengths', [`Content-Length: 19, ${TOTAL}`], '400!', FORM),
  form('a length with a plus sign', ['Content-Length: +19'], '400!'),
  form('a length with a minus sign', ['Content-Length: -19'], '400!'),
  form('a length in hexadecimal', ['Content-Length: 0x13'], '400!'),
  form('a length as a fraction', ['Content-Length: 19.0'], '400!'),
  form('a length in quotes', ['Content-Length: "19"'], '400!'),
  form('a length with a space inside', ['Content-Length: 1 9'], '400!'),
  form('a length with leading zeros', ['Content-Length: 0019'], 'ok'),
  form('a length between tabs', ['Content-Length:\t19\t'], 'ok | 400! | ok'),
  row('an empty length', post(['Content-Length: '], ''), 'empty | 400! | 400!'),
  form('a length of 21 digits', ['Content-Length: 100000000000000000019'], '400!'),
  form('a length of 2^64 + 19', ['Content-Length: 18446744073709551635'], '400!'),
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
  hidden(
    'a coding after a vertical tab',
    [CHUNKS_TOTAL, 'Transfer-Encoding: \x0bchunked'],
    'waits | 501! | 400!',
  ),
  hidden(
    'a coding with a space before the colon',
    [CHUNKS_TOTAL, 'Transfer-Encoding : chunked'],
    'waits | 400! | 400!',
  ),
  hidden('a folded coding', [CHUNKS_TOTAL, 'Transfer-Encoding:', ' chunked'], 'waits | 400! | empty!'),
  hidden(
    'a coding after a lone line feed',
    [CHUNKS_TOTAL, 'A: b\nTransfer-Encoding: chunked'],
    'waits | 400! | empty!',
  ),
  form('a length and `Transfer_Encoding`', [LENGTH, 'Transfer_Encoding: chunked'], 'ok'),
  row('chunks at GET', get(CHUNKED) + LAST_CHUNK, 'ok | 400! | ok | 400'),
  row('chunks at GET, by another name', get('Transfer-Encoding: x') + LAST_CHUNK, 'ok | 400! | 501! | 400!'),
]

/** A parser that does not support trailers ends the body after two bytes, and treats the rest as the next request. */
const TRAILER = lines('aa: /openapi.json HTTP/1.1', 'Host: powgate', NOT_MODIFIED)

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
  chunks('a trailer that looks like a request', `13\r\n${FORM}\r\n0\r\n${TRAILER}`, 'closed | ok | 502'),
  chunks('a trailer that looks like a request, no body', `0\r\n${TRAILER}`, 'closed | empty | 502'),
  row(
    'a trailer that looks like a request, at GET',
    `${get(CHUNKED)}0\r\n${TRAILER}`,
    'ok, 405 | closed | ok | 502',
  ),
  chunks('no last chunk', `13\r\n${FORM}\r\n`, '400!'),
]

const HEADERS: readonly Row[] = [
  header('a folded line', ['A: b', ' c'], 'waits | 400! | ok'),
  form('a folded length', ['Content-Length:', ' 19'], 'waits | 400! | ok'),
  row('a folded first line', lines(GET, ' A: b', 'Host: powgate', NOT_MODIFIED), 'waits | 400! | 400!'),
  header('a lone line feed between lines', ['A: b\nC: d'], 'waits | ok | ok'),
  row('line feeds only', get().replaceAll('\r\n', '\n'), '505! | ok | ok'),
  header('a lone carriage return in a value', ['A: b\rC: d'], 'waits | 400! | 400!'),
  header('a space before the colon', ['A : b'], 'waits | 400! | 400!'),
  form('a length with a space before the colon', ['Content-Length : 19'], 'waits | 400! | 400!'),
  header('a tab before the colon', ['A\t: b'], 'waits | 400! | 400!'),
  header('a line without a colon', ['A'], 'waits | ok | 400!'),
  header('an empty name', [': b'], 'ok | 400! | 400!'),
  header('a name with a space inside', ['A b: c'], 'waits | 400! | 400!'),
  header('a name with a slash', ['A/b: c'], 'waits | ok | 400!'),
  header('a name in brackets', ['(A): b'], 'waits | ok | 400!'),
  header('a name with an umlaut', ['\xc4: b'], 'waits | ok | 400!'),
  header('NUL in a name', ['A\0b: c'], 'waits | 400! | 400!'),
  header('NUL in a value', ['A: b\0c'], 'waits | 400! | waits'),
  header('a control byte in a value', ['A: b\x01c'], 'waits'),
  header('DEL in a value', ['A: b\x7fc'], 'ok'),
  header('bytes above 127 in a value', ['A: \xff\xfe'], 'ok'),
  header('a value between tabs', ['A:\tb\t'], 'ok'),
  header('an empty value', ['A:'], 'ok'),
  row('95 lines', get(...Array.from({ length: 92 }, (_, index) => `A${index}: b`)), 'ok'),
  row('120 lines', get(...Array.from({ length: 117 }, (_, index) => `A${index}: b`)), '431! | 431 | 400!'),
  header('a header block of 3,900 bytes', [`A: ${'b'.repeat(3800)}`], 'ok'),
  header('a header block of 6,000 bytes', [`A: ${'b'.repeat(5900)}`], 'ok'),
  header('a header block of 40,000 bytes', [`A: ${'b'.repeat(39_900)}`], '431! | 400! | 400!'),
  row('no Host', lines(GET, NOT_MODIFIED), '400!'),
  row('no header at all', lines(GET), 'waits | 400! | 400!'),
  header('two Hosts', ['Host: other'], 'ok | 400! | 400!'),
  row('an empty Host', lines(GET, 'Host:', NOT_MODIFIED), 'ok | 400! | ok'),
  row('a Host with a path', lines(GET, 'Host: a/b@c', NOT_MODIFIED), 'ok | 400! | ok'),
  form('`Expect: 100-continue`', [LENGTH, 'Expect: 100-continue'], 'ok'),
  header('another `Expect`', ['Expect: 200-ok'], 'ok'),
  header(
    '`Upgrade: websocket`',
    [
      'Upgrade: websocket',
      'Connection: Upgrade',
      'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
      'Sec-WebSocket-Version: 13',
    ],
    'ok',
  ),
  header(
    '`Upgrade: h2c`',
    ['Upgrade: h2c', 'Connection: Upgrade, HTTP2-Settings', 'HTTP2-Settings: AAMAAABkAAQAAP__'],
    'ok',
  ),
  header('`Connection: close`', ['Connection: close'], 'ok!'),
  form('`Connection` that names the length', [LENGTH, 'Connection: Content-Length'], 'ok'),
]

const REQUEST_LINES: readonly Row[] = [
  line('absolute form', 'GET http://powgate/openapi.json HTTP/1.1', '505! | ok | 505!'),
  line('authority form', 'GET powgate:80 HTTP/1.1', '505! | 400! | 400!'),
  line('asterisk form', 'OPTIONS * HTTP/1.1', '505! | 400! | 505!'),
  line('CONNECT', 'CONNECT powgate:80 HTTP/1.1', '505! | 400! | 505!'),
  line('TRACE', 'TRACE /openapi.json HTTP/1.1', '405 | 405! | 405'),
  row('HEAD', requestLine('HEAD /openapi.json HTTP/1.1').replace('*', '"x"'), '200'),
  row(
    'HEAD with a body',
    `${lines('HEAD /challenge HTTP/1.1', 'Host: powgate', 'Content-Length: 3')}abc`,
    '405',
  ),
  line('a method in lower case', 'get /openapi.json HTTP/1.1', '405 | 400! | 405'),
  line('a method that nobody knows', 'BREW /openapi.json HTTP/1.1', '405'),
  line('a method with other characters', 'G@T /openapi.json HTTP/1.1', '405 | 400! | 400!'),
  cut('a segment that ends behind the method', 'GET ', '505! | ok | ok'),
  cut('a segment that ends within the version', 'GET /openapi.json HT', '505! | ok | ok'),
  line('two spaces before the target', 'GET  /openapi.json HTTP/1.1', '505! | ok | ok'),
  line('two spaces behind the target', 'GET /openapi.json  HTTP/1.1', '505! | ok | ok'),
  line('a tab before the target', 'GET\t/openapi.json HTTP/1.1', '505! | 400! | ok'),
  line('a space before the method', ' GET /openapi.json HTTP/1.1', '505! | 400! | 400!'),
  row('an empty line before the method', `\r\n${get()}`, 'waits | ok | ok'),
  line('a space behind the version', 'GET /openapi.json HTTP/1.1 ', '505! | ok | 400!'),
  line('a target without a slash', 'GET openapi.json HTTP/1.1', '505! | 400! | 400!'),
  line('a target with a space', 'GET /openapi .json HTTP/1.1', '505! | 400! | 400!'),
  line('a query', 'GET /openapi.json?a=b HTTP/1.1', 'ok'),
  line('a fragment', 'GET /openapi.json#a HTTP/1.1', '404 | 404 | 400!'),
  line('`%00` in the path', 'GET /openapi.json%00 HTTP/1.1', '404 | 400! | 404'),
  line('NUL in the path', 'GET /openapi\0.json HTTP/1.1', '505! | 400! | 400!'),
  line('an encoded slash', 'GET /%2fopenapi.json HTTP/1.1', '404'),
  line('an encoded letter', 'GET /%6fpenapi.json HTTP/1.1', '404'),
  line('two slashes', 'GET //openapi.json HTTP/1.1', '404'),
  line('`/./`', 'GET /./openapi.json HTTP/1.1', '404'),
  line('`/../` above the root', 'GET /../openapi.json HTTP/1.1', '404 | 400! | 404'),
  line('bytes above 127 in the path', 'GET /\xff\xfe HTTP/1.1', '404 | 404 | 400!'),
  line('a path of 3,000 bytes', `GET /${'a'.repeat(3000)} HTTP/1.1`, '404'),
  line('a path of 9,000 bytes', `GET /${'a'.repeat(9000)} HTTP/1.1`, '404 | 414! | 404'),
  row('HTTP/0.9', 'GET /openapi.json\r\n', 'waits | an answer that is not HTTP/1, closed | 400!'),
  line('HTTP/1.0', 'GET /openapi.json HTTP/1.0', '505! | ok! | 505!'),
  row(
    'HTTP/1.0 with keep-alive',
    lines('GET /openapi.json HTTP/1.0', 'Host: a', NOT_MODIFIED, 'Connection: keep-alive'),
    '505! | ok | 505!',
  ),
  row(
    'HTTP/1.0 with chunks',
    lines('POST /siteverify HTTP/1.0', 'Host: a', CHUNKED) + CHUNKS,
    '505! | 400! | 505!',
  ),
  line('HTTP/1.2', 'GET /openapi.json HTTP/1.2', '505! | ok | ok'),
  line('HTTP/2.0', 'GET /openapi.json HTTP/2.0', '505! | 505! | ok'),
  line('http/1.1 in lower case', 'GET /openapi.json http/1.1', '505! | 400! | 400!'),
  row(
    'the preface of HTTP/2',
    'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
    '505! | 400! | an answer that is not HTTP/1, closed',
  ),
  row('a TLS greeting', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n', '505! | 400! | 400!'),
  row('a PROXY line', `PROXY TCP4 203.0.113.9 127.0.0.1 1 2\r\n${get()}`, '505! | 400! | 400!'),
]

const SEQUENCES: readonly Row[] = [
  row('two requests in one segment', get() + get(), 'ok, ok'),
  row('a form and a request in one segment', post([LENGTH], FORM) + get(), 'ok, ok'),
  row('a line break behind a form', post([LENGTH], `${FORM}\r\n`), 'ok, waits | ok | ok'),
]

/** Those that could hide another request: two servers may see its end in two places. */
const ABOUT_LENGTHS: readonly Section[] = [
  { title: 'Content-Length', rows: LENGTHS },
  { title: 'Transfer-Encoding', rows: CODINGS },
  { title: 'Chunks', rows: CHUNK_SIZES },
]

export const SECTIONS: readonly Section[] = [
  ...ABOUT_LENGTHS,
  { title: 'Header lines', rows: HEADERS },
  { title: 'Request line', rows: REQUEST_LINES },
  { title: 'Requests that follow each other', rows: SEQUENCES },
]

const HEADINGS = [
  ...['request', 'powgate, from a visitor', 'powgate, from a trusted proxy'],
  ...['behind nginx', 'behind HAProxy'],
]

/** Whether powgate takes a request from a trusted proxy, or waits for its end, where a proxy does otherwise. */
const isLeftToProxies = ({ fates }: Row) =>
  /^(accepted|waits)/.test(fates.trusted) && WAYS.some(way => fates[way] !== fates.trusted)

/** Markdown, of what is left to proxies; requests with the same results everywhere share a line. */
export function conformanceTable(): string {
  const asLine = (cells: readonly string[]) => `| ${cells.join(' | ')} |`
  const table = [HEADINGS, HEADINGS.map(() => '---')].map(asLine)
  for (const { title, rows } of ABOUT_LENGTHS) {
    table.push(asLine([`**${title}**`, '', '', '', '']))
    const byFates = new Map<string, string[]>()
    for (const { about, fates } of rows.filter(isLeftToProxies)) {
      const key = WAYS.map(way => fates[way]).join(' | ')
      byFates.set(key, [...(byFates.get(key) ?? []), about])
    }
    for (const [fates, abouts] of byFates) table.push(asLine([abouts.join('; '), fates]))
  }
  return table.join('\n')
}

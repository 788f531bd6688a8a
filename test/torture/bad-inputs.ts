/**
 * Bytes that no client of ours sends, as latin1 text. Apart from times and tokens, each follows from the seed and its number.
 */

import { v2Header } from '../harness/proxy-header.ts'
import { words } from '../harness/values.ts'
import { anyJson, type Genuine, mutated, nearlyForm, nearlyJson } from './bad-bodies.ts'
import { SECTIONS } from './conformance-rows.ts'
import { Random } from './random.ts'

export interface BadInput {
  readonly family: Family
  /** Each part is sent by a write of its own. */
  readonly parts: readonly string[]
  /** What the client does after sending: waits for an answer, ends its side of the connection, or resets it at once. */
  readonly ending: 'wait' | 'finish' | 'reset'
}

/** The families of inputs, and how many of a thousand inputs each makes. */
const FAMILIES = {
  noise: 40,
  conformance: 100,
  pipelined: 60,
  split: 40,
  'cut off': 20,
  'byte by byte': 5,
  oversize: 20,
  'control bytes': 90,
  chunks: 80,
  'http grammar': 150,
  'json to /verify': 125,
  'json to /verify-token': 125,
  'forms to /siteverify': 70,
  'mutated valid': 75,
} as const

export type Family = keyof typeof FAMILIES | 'proxy header' | 'admin'

const WEIGHTED = Object.entries(FAMILIES).flatMap(([family, weight]) =>
  Array<Family>(weight).fill(family as Family),
)

/** Share of the clients that wait for an answer. */
const WAITS = 0.85

const ROWS = SECTIONS.flatMap(({ rows }) => rows)

const lines = (...all: readonly string[]) => `${all.join('\r\n')}\r\n\r\n`

/** A generator for each number, so that one input can be repeated without the others. */
export function randomOf(seed: number, index: number): Random {
  return new Random((Math.imul(index + 1, 0x9e3779b1) ^ seed) >>> 0 || 1)
}

export function badInput(random: Random, genuine: Genuine): BadInput {
  const family = random.pick(WEIGHTED)
  const parts = partsOf(random, family, genuine)
  return { family, parts, ending: endingOf(random, family === 'cut off' ? 0 : WAITS) }
}

/** Whole requests with a body of any kind: they get an answer, whatever the body contains. */
export function mustBeAnswered({ family, parts, ending }: BadInput): boolean {
  if (ending !== 'wait' || !/^(?:json|forms) to /.test(family)) return false
  return /^(?:[ -~]+\r\n)+\r\n/.test(parts.join(''))
}

/** @param waits the share of clients that wait for an answer */
function endingOf(random: Random, waits: number): BadInput['ending'] {
  if (random.chance(waits)) return 'wait'
  return random.chance(0.5) ? 'finish' : 'reset'
}

function partsOf(random: Random, family: Family, genuine: Genuine): string[] {
  switch (family) {
    case 'noise':
      return [random.bytes(random.between(1, 400)).toString('latin1')]
    case 'conformance':
      return [random.chance(0.4) ? random.pick(ROWS).bytes : mutated(random, random.pick(ROWS).bytes)]
    case 'pipelined':
      return [Array.from({ length: random.between(2, 6) }, () => oneOf(random, genuine)).join('')]
    case 'split':
      return split(random, oneOf(random, genuine))
    case 'cut off':
      return split(random, valid(random, genuine)).slice(0, 1)
    case 'byte by byte':
      return [...oneOf(random, genuine)].slice(0, 700)
    case 'oversize':
      return [oversize(random, genuine)]
    case 'control bytes':
      return [withControlBytes(random, oneOf(random, genuine))]
    case 'chunks':
      return [chunks(random, genuine)]
    case 'http grammar':
      return [grammatical(random)]
    case 'json to /verify':
      return [
        verifyRequest(random, genuine, random.chance(0.3) ? anyJson(random) : solutionText(random, genuine)),
      ]
    case 'json to /verify-token':
      return [redemption(random, genuine)]
    case 'forms to /siteverify': {
      const { contentType, body } = nearlyForm(random, genuine)
      return [withBody('POST /siteverify HTTP/1.1', [`Content-Type: ${contentType}`], body)]
    }
    default:
      return [mutated(random, valid(random, genuine))]
  }
}

function oneOf(random: Random, genuine: Genuine): string {
  switch (random.below(5)) {
    case 0:
      return grammatical(random)
    case 1:
      return verifyRequest(random, genuine, solutionText(random, genuine))
    case 2:
      return redemption(random, genuine)
    case 3:
      return mutated(random, valid(random, genuine))
    default:
      return valid(random, genuine)
  }
}

function split(random: Random, text: string): string[] {
  const at = random.between(1, Math.max(1, text.length - 1))
  return [text.slice(0, at), text.slice(at)].filter(part => part !== '')
}

function withBody(line: string, headers: readonly string[], body: string): string {
  return lines(line, 'Host: powgate', ...headers, `Content-Length: ${body.length}`) + body
}

const JSON_TYPE = 'Content-Type: application/json'

function verifyRequest(random: Random, genuine: Genuine, body: string): string {
  const siteKey = random.chance(0.95) ? genuine.siteKey : mutated(random, genuine.siteKey)
  return withBody('POST /verify HTTP/1.1', [`X-Site-Key: ${siteKey}`, JSON_TYPE], body)
}

const solutionText = (random: Random, genuine: Genuine) => nearlyJson(random, genuine.solution(random))

function redemption(random: Random, genuine: Genuine): string {
  const token = genuine.token()
  const fields = {
    token: random.chance(0.6) ? token : mutated(random, token),
    ...(random.chance(0.3) ? { expectedIp: random.pick(['127.0.0.1', '::1', '01.2.3.4', '', 'x']) } : {}),
    ...(random.chance(0.3) ? { idempotencyKey: random.hex(random.below(80)) } : {}),
  }
  const body = random.chance(0.25) ? anyJson(random) : nearlyJson(random, fields)
  const key = random.chance(0.9) ? genuine.apiKey : mutated(random, genuine.apiKey)
  return withBody('POST /verify-token HTTP/1.1', [`Authorization: Bearer ${key}`, JSON_TYPE], body)
}

function valid(random: Random, genuine: Genuine): string {
  const { siteKey, apiKey } = genuine
  switch (random.below(8)) {
    case 0:
      return lines('GET /challenge HTTP/1.1', 'Host: powgate', `X-Site-Key: ${siteKey}`)
    case 1:
      return withBody(
        'POST /verify HTTP/1.1',
        [`X-Site-Key: ${siteKey}`, JSON_TYPE],
        JSON.stringify(genuine.solution(random)),
      )
    case 2:
      return withBody(
        'POST /verify-token HTTP/1.1',
        [`Authorization: Bearer ${apiKey}`, JSON_TYPE],
        JSON.stringify({ token: genuine.token() }),
      )
    case 3:
      return lines(
        `OPTIONS /${random.pick(['challenge', 'verify', 'verify-token'])} HTTP/1.1`,
        'Host: powgate',
        'Origin: https://example.com',
        'Access-Control-Request-Method: POST',
        'Access-Control-Request-Headers: content-type, x-site-key',
      )
    case 4:
      return lines(
        `${random.pick(['GET', 'HEAD'])} ${random.pick(FILES)} HTTP/1.1`,
        'Host: powgate',
        `If-None-Match: ${random.pick(['*', '"a"', 'W/"a", "b"', '"', ',,,', '"\xff"'])}`,
        `Accept-Encoding: ${random.pick(['gzip', 'br;q=0', 'gzip;q=2', '*', 'a'.repeat(200), ';;;', 'identity;q=0'])}`,
      )
    case 5:
      return lines(
        'GET /challenge HTTP/1.1',
        'Host: powgate',
        `X-Site-Key: ${siteKey}`,
        `X-Forwarded-For: ${forwarded(random)}`,
      )
    case 6:
      return lines(
        'GET /challenge HTTP/1.1',
        'Host: powgate',
        `X-Site-Key: ${siteKey}`,
        `Origin: ${random.pick(ORIGINS)}`,
      )
    default:
      return lines('HEAD /challenge HTTP/1.1', 'Host: powgate', `X-Site-Key: ${siteKey}`)
  }
}

const FILES = words(
  '/openapi.json /widget.js /widget/worker.js /widget/frame.html /widget/worker.0123456789.js',
  '/widget/ /widget/../x /widget/%2e%2e/x /widget/worker.0123456789.constructor / /demo',
  '/favicon.ico',
)

const ORIGINS = [...words('null https:// :// https://a:99999 https://\xff https://[::1 *'), 'a'.repeat(1000)]

function forwarded(random: Random): string {
  const hop = () =>
    random.pick(['', ...words('1.2.3.4 ::1 [::1]:80 1.2.3.4:5 unknown 01.2.3.4 fe80::1%eth0 \xff ,')])
  return Array.from({ length: random.below(60) }, hop).join(random.pick([',', ', ', ' ', ',,']))
}

const METHODS = [
  ...words('GET POST PUT HEAD OPTIONS DELETE PATCH TRACE CONNECT get \0 PRI'),
  '',
  'G T',
  'A'.repeat(300),
]
const PATHS = [
  ...words(
    '/challenge /verify /verify-token /siteverify /openapi.json /widget.js * // /% /%zz /\xff /a?',
    'http://a/challenge /challenge?x=% /challenge# /CHALLENGE /challenge/ /./challenge',
  ),
  '',
  `/${'a/'.repeat(300)}`,
]
const VERSIONS = [
  ...words('HTTP/1.1 HTTP/1.1 HTTP/1.1 HTTP/1.0 HTTP/1.2 HTTP/2 HTTP/11 http/1.1'),
  'HTTP/1.1 ',
  '',
]
const HEADER_NAMES = [
  ...words(
    'Host X-Site-Key Authorization Content-Type Content-Length Transfer-Encoding Connection Expect',
    'Upgrade Origin X-Forwarded-For X-Request-Id Accept-Encoding If-None-Match Cookie Range TE',
    'Trailer A \xff \0',
  ),
  '',
  ' ',
  'A B',
]
const HEADER_VALUES = [
  ...words(
    'a 0 5 -1 chunked gzip close keep-alive 100-continue websocket application/json bytes=0-0',
    '\xff\xfe \t 99999999999999999999',
  ),
  '',
  '5, 5',
  'Bearer ',
  'Bearer x',
  ' a ',
  'a'.repeat(900),
]
const BREAKS = [...words('\r\n \r\n \r\n \r\n \r\n \r\n \n \r \r\r\n \0\r\n'), '\r\n ']

/** Follows the grammar of HTTP, with some symbols replaced by wrong ones. */
function grammatical(random: Random): string {
  let text = `${random.pick(METHODS)} ${random.pick(PATHS)} ${random.pick(VERSIONS)}\r\n`
  if (random.chance(0.9)) text += 'Host: powgate\r\n'
  for (let count = random.below(8); count > 0; count--) {
    text += random.pick(HEADER_NAMES) + random.pick([': ', ': ', ':', ' : ', '', ':\t'])
    text += random.pick(HEADER_VALUES) + random.pick(BREAKS)
  }
  return `${text}\r\n${random.chance(0.3) ? random.bytes(random.below(60)).toString('latin1') : ''}`
}

function withControlBytes(random: Random, text: string): string {
  let result = text
  for (let count = random.between(1, 6); count > 0; count--) {
    const at = random.below(result.length + 1)
    result =
      result.slice(0, at) +
      String.fromCharCode(random.pick(CONTROL_BYTES)) +
      result.slice(at + random.below(2))
  }
  return result
}

const CONTROL_BYTES = [0, 0, 1, 7, 8, 9, 10, 11, 12, 13, 27, 127, 128, 160, 192, 237, 255] as const

function chunks(random: Random, genuine: Genuine): string {
  const path = random.pick(['/verify', '/verify-token', '/siteverify', '/challenge', '/none'])
  const head = lines(
    `POST ${path} HTTP/1.1`,
    'Host: powgate',
    `X-Site-Key: ${genuine.siteKey}`,
    `Authorization: Bearer ${genuine.apiKey}`,
    JSON_TYPE,
    `Transfer-Encoding: ${random.pick(['chunked', 'chunked', 'chunked', 'Chunked', 'chunked, chunked', 'x', 'gzip, chunked', ' '])}`,
    ...(random.chance(0.1) ? ['Content-Length: 5'] : []),
  )
  const body = JSON.stringify(genuine.solution(random))
  let text = ''
  for (let at = 0; at < body.length; ) {
    const length = random.between(1, body.length)
    const part = body.slice(at, at + length)
    text +=
      chunkSize(random, part.length) + part + random.pick(['\r\n', '\r\n', '\r\n', '\r\n', '\n', '', 'XX'])
    at += length
  }
  return `${head}${text}${random.pick(['0\r\n\r\n', '0\r\n\r\n', '0\r\n\r\n', '0\r\nA: b\r\n\r\n', '00\r\n\r\n', '', '0', '-0\r\n\r\n', '0\r\naa: / HTTP/1.1\r\n\r\n'])}`
}

function chunkSize(random: Random, length: number): string {
  const size = length.toString(16)
  const wrong = [
    `0x${size}`,
    `-${size}`,
    `${size};a="b"`,
    `${size} `,
    `0000000000${size}`,
    'f'.repeat(17),
    '7fffffffffffffff',
    '',
    'g',
    size + size,
  ]
  return (random.chance(0.8) ? size : random.pick(wrong)) + random.pick(['\r\n', '\r\n', '\r\n', '\n', '\r'])
}

function oversize(random: Random, genuine: Genuine): string {
  const length = random.pick([4000, 4090, 4096, 4100, 5000, 8192, 20_000, 70_000])
  const { siteKey } = genuine
  switch (random.below(6)) {
    case 0:
      return lines(`GET /${'a'.repeat(length)} HTTP/1.1`, 'Host: powgate')
    case 1:
      return lines(
        'GET /challenge HTTP/1.1',
        'Host: powgate',
        `X-Site-Key: ${siteKey}`,
        `A: ${'b'.repeat(length)}`,
      )
    case 2: {
      const many = Array.from(
        { length: random.pick([90, 97, 98, 99, 100, 101, 150, 1000]) },
        (_, index) => `A${index}: b`,
      )
      return lines('GET /challenge HTTP/1.1', 'Host: powgate', `X-Site-Key: ${siteKey}`, ...many)
    }
    case 3:
      return lines(`${'A'.repeat(length)} /challenge HTTP/1.1`, 'Host: powgate')
    case 4:
      return verifyRequest(random, genuine, `{"nonce":"${'a'.repeat(length)}"}`)
    default:
      return lines('GET /challenge HTTP/1.1', 'Host: powgate', `${'A'.repeat(length)}: b`)
  }
}

/** Bytes that a trusted proxy never sends before a client's bytes; sometimes a valid header. */
export function badProxyInput(random: Random, genuine: Genuine): BadInput {
  const { parts, ending } = badInput(random, genuine)
  const header = proxyHeader(random)
  const [first = '', ...rest] = parts
  return { family: 'proxy header', parts: [header + first, ...rest], ending }
}

function proxyHeader(random: Random): string {
  const source = `127.${random.between(1, 200)}.${random.below(256)}.${random.below(256)}`
  const right = v2Header({ source }).toString('latin1')
  if (random.chance(0.5)) return right
  switch (random.below(6)) {
    case 1:
      return right + right
    case 2:
      return mutated(random, right)
    case 3:
      return v2Header({
        version: random.below(16),
        command: random.below(16),
        family: random.below(256),
        source,
        extensions: random.bytes(random.below(100)),
      }).toString('latin1')
    case 4:
      return v2Header({ source, length: random.below(65_536) }).toString('latin1')
    case 5:
      return mutated(random, `PROXY TCP4 ${source} 127.0.0.1 1 2\r\n`)
    default:
      return right.slice(0, random.below(right.length))
  }
}

const ADMIN_PATHS = words(
  '/ /healthz /readyz /metrics /dashboard /dashboard/app.js /dashboard/data.json /grafana.json',
  '/dashboard/data.json?range=30m&site=x /dashboard/data.json?range=constructor',
  '/dashboard/data.json?range=24h&site=__proto__ /dashboard/data.json?site=%',
  '/dashboard/data.json?range=%ff //metrics /metrics/ /%6detrics * http://a/metrics',
)

export function badAdminInput(random: Random): BadInput {
  const line = `${random.pick(METHODS)} ${random.pick(ADMIN_PATHS)} ${random.pick(VERSIONS)}`
  const host = random.pick(['', ...words('localhost 127.0.0.1 [::1] evil.example \xff localhost:99999 [::1')])
  const nearly = lines(
    line,
    `Host: ${host}`,
    ...(random.chance(0.2) ? [`${random.pick(HEADER_NAMES)}: ${random.pick(HEADER_VALUES)}`] : []),
  )
  const text = random.pick([
    nearly,
    nearly,
    mutated(random, nearly),
    grammatical(random),
    random.pick(ROWS).bytes,
  ])
  return { family: 'admin', parts: [text], ending: endingOf(random, WAITS) }
}

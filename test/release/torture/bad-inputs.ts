/** Bytes that no client of ours sends, as latin1 text. Apart from times and tokens, each follows from the seed and its number. */

import { type V2Options, v2Header } from '../../harness/proxy-header.ts'
import { Random } from '../../harness/random.ts'
import { requestText } from '../../harness/raw-http.ts'
import { words } from '../../harness/values.ts'
import { ROWS } from './conformance-rows.ts'

export interface BadInput {
  readonly family: string
  /** Each part is sent by a write of its own. */
  readonly parts: readonly string[]
  /** What the client does after sending: waits for an answer, ends its side of the connection, or resets it at once. */
  readonly ending: 'wait' | 'finish' | 'reset'
}

/** Valid values, which get through more checks than noise. Made for each input, so that they are still valid when sent. */
export interface Genuine {
  readonly siteKey: string
  readonly apiKey: string
  /** Solved, and issued to the address that sends the input. */
  solution(): Record<string, unknown>
  token(): string
}

/** A text by one of the makers, so that only this one is made. */
const oneOf = (random: Random, makes: readonly (() => string)[]): string => random.pick(makes)()

/** The text with a few bytes changed, removed, doubled, or inserted. */
function mutated(random: Random, text: string): string {
  let result = text
  for (let count = random.between(1, 4); count > 0; count--) {
    const at = random.below(result.length + 1)
    const byte = String.fromCharCode(random.chance(0.3) ? random.pick(NASTY_BYTES) : random.below(256))
    const length = random.pick([0, 1, 1, 2, 8])
    const cut = result.slice(at, at + length)
    const put = random.pick(['', byte, byte.repeat(3), cut + cut])
    result = result.slice(0, at) + put + result.slice(at + length)
  }
  return result
}

const NASTY_BYTES = [0, 9, 10, 11, 13, 32, 34, 37, 44, 58, 61, 92, 124, 127, 128, 255] as const

const JSON_TYPE = 'Content-Type: application/json'

type Make = (random: Random, genuine: Genuine) => string | string[]

/** The families of inputs: how many of a thousand inputs each makes, and one input, whole or in parts. */
const FAMILIES: Readonly<Record<string, readonly [count: number, make: Make]>> = {
  noise: [40, random => random.bytes(random.between(1, 400)).toString('latin1')],
  conformance: [
    150,
    random => (random.chance(0.4) ? oddRequest(random) : mutated(random, oddRequest(random))),
  ],
  pipelined: [60, pipelined],
  split: [40, (random, genuine) => split(random, anyRequest(random, genuine))],
  'cut off': [20, (random, genuine) => split(random, valid(random, genuine)).slice(0, 1)],
  'byte by byte': [5, (random, genuine) => [...anyRequest(random, genuine)].slice(0, 700)],
  'http grammar': [250, grammatical],
  'mutated valid': [435, (random, genuine) => mutated(random, valid(random, genuine))],
}

const WEIGHTED = Object.entries(FAMILIES).flatMap(([family, [count]]) => Array<string>(count).fill(family))

const oddRequest = (random: Random) => random.pick(ROWS).bytes

/** A generator for each number, so that one input can be repeated without the others. */
export function randomOf(seed: number, index: number): Random {
  return new Random((Math.imul(index + 1, 0x9e3779b1) ^ seed) >>> 0 || 1) // from a state of 0 only 0 would follow
}

export function badInput(random: Random, genuine: Genuine): BadInput {
  const family = random.pick(WEIGHTED)
  const parts = [FAMILIES[family]![1](random, genuine)].flat()
  const waits = random.chance(family === 'cut off' ? 0 : 0.85) // the share of clients that do
  return { family, parts, ending: waits ? 'wait' : random.chance(0.5) ? 'finish' : 'reset' }
}

function anyRequest(random: Random, genuine: Genuine): string {
  return oneOf(random, [
    () => grammatical(random),
    () => mutated(random, valid(random, genuine)),
    () => valid(random, genuine),
  ])
}

function pipelined(random: Random, genuine: Genuine): string {
  return Array.from({ length: random.between(2, 6) }, () => anyRequest(random, genuine)).join('')
}

function split(random: Random, text: string): string[] {
  const at = random.between(1, Math.max(1, text.length - 1))
  return [text.slice(0, at), text.slice(at)].filter(part => part !== '')
}

function valid(random: Random, genuine: Genuine): string {
  const key = `X-Site-Key: ${genuine.siteKey}`
  const bearer = `Authorization: Bearer ${genuine.apiKey}`
  const challenge = (...more: readonly string[]) => requestText('GET /challenge', [key, ...more])
  return oneOf(random, [
    () => challenge(),
    () => requestText('POST /verify', [key, JSON_TYPE], JSON.stringify(genuine.solution())),
    () => requestText('POST /verify-token', [bearer, JSON_TYPE], JSON.stringify({ token: genuine.token() })),
    () =>
      requestText(`OPTIONS /${random.pick(['challenge', 'verify', 'verify-token'])}`, [
        'Origin: https://example.com',
        'Access-Control-Request-Method: POST',
        'Access-Control-Request-Headers: content-type, x-site-key',
      ]),
    () =>
      requestText(`${random.pick(['GET', 'HEAD'])} ${random.pick(FILES)}`, [
        `If-None-Match: ${random.pick(['*', '"a"', 'W/"a", "b"', '"', ',,,', '"\xff"'])}`,
        `Accept-Encoding: ${random.pick(['gzip', 'br;q=0', 'gzip;q=2', '*', 'a'.repeat(200), ';;;', 'identity;q=0'])}`,
      ]),
    () => challenge(`X-Forwarded-For: ${forwarded(random)}`),
    () => challenge(`Origin: ${random.pick(ORIGINS)}`),
    () => requestText('HEAD /challenge', [key]),
  ])
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
  ...['', 'G T', 'A'.repeat(300)],
]
const PATHS = [
  ...words(
    '/challenge /verify /verify-token /siteverify /openapi.json /widget.js * // /% /%zz /\xff /a?',
    'http://a/challenge /challenge?x=% /challenge# /CHALLENGE /challenge/ /./challenge',
  ),
  ...['', `/${'a/'.repeat(300)}`],
]
const VERSIONS = [
  ...words('HTTP/1.1 HTTP/1.1 HTTP/1.1 HTTP/1.0 HTTP/1.2 HTTP/2 HTTP/11 http/1.1'),
  ...['HTTP/1.1 ', ''],
]
const HEADER_NAMES = [
  ...words(
    'Host X-Site-Key Authorization Content-Type Content-Length Transfer-Encoding Connection Expect',
    'Upgrade Origin X-Forwarded-For X-Request-Id Accept-Encoding If-None-Match Cookie Range TE',
    'Trailer A \xff \0',
  ),
  ...['', ' ', 'A B'],
]
const HEADER_VALUES = [
  ...words(
    'a 0 5 -1 chunked gzip close keep-alive 100-continue websocket application/json bytes=0-0',
    '\xff\xfe \t 99999999999999999999',
  ),
  ...['', '5, 5', 'Bearer ', 'Bearer x', ' a ', 'a'.repeat(900)],
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

/** Bytes that a trusted proxy never sends before a client's bytes; sometimes a valid header. */
export function badProxyInput(random: Random, genuine: Genuine): BadInput {
  const { parts, ending } = badInput(random, genuine)
  const header = proxyHeader(random)
  const [first = '', ...rest] = parts
  return { family: 'proxy header', parts: [header + first, ...rest], ending }
}

function proxyHeader(random: Random): string {
  const source = `127.${random.between(1, 200)}.${random.below(256)}.${random.below(256)}`
  const header = (more: V2Options) => v2Header({ source, ...more }).toString('latin1')
  const right = header({})
  if (random.chance(0.5)) return right
  return oneOf(random, [
    () => right + right,
    () => mutated(random, right),
    () =>
      header({
        version: random.below(16),
        command: random.below(16),
        family: random.below(256),
        extensions: random.bytes(random.below(100)),
      }),
    () => header({ length: random.below(65_536) }),
    () => mutated(random, `PROXY TCP4 ${source} 127.0.0.1 1 2\r\n`),
    () => right.slice(0, random.below(right.length)),
  ])
}

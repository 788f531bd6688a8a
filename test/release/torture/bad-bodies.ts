/** Request bodies that are almost valid, and bodies that are entirely wrong. All as latin1 text: one character, one byte. */

import type { Random } from '../../harness/random.ts'
import { words } from '../../harness/values.ts'

/** Valid values, which get through more checks than noise. Made for each input, so that they are still valid when sent. */
export interface Genuine {
  readonly siteKey: string
  readonly apiKey: string
  /** Solved, and issued to the address that sends the input. */
  solution(random: Random): Record<string, unknown>
  token(): string
}

/** One of these texts; only that one is made. */
export const oneOf = (random: Random, makes: readonly (() => string)[]): string => random.pick(makes)()

const NUMBERS = words(
  '0 -0 1 -1 1.0 1e3 1E+3 1e-3 1e400 -1e400 007 +7 .5 5. 0x10 NaN Infinity 9007199254740991',
  '9007199254740992 9007199254740993 18446744073709551616 1e15 123456789e-3 4.9e-324',
)

const STRINGS = [
  ...words(
    '"" "\\u0000" "\\ud800" "\\udc00\\ud800" "\\ud83d\\ude00" "\\x41" "\\u12" "\n" "\0" "\x7f" "\xff"',
    '"\xc0\xaf" "\xed\xa0\x80" "\xf4\x90\x80\x80" "\xef\xbb\xbf" "__proto__" "constructor" " a "\\',
    '"\xe2\x80\xa8"',
  ),
  "'a'",
]

const NAMES = [
  ...words(
    'nonce counter solveTimeMs fingerprintHash environment webdriver token expectedIp idempotencyKey',
    'secret response remoteip sitekey idempotency_key __proto__ \\u005f_proto__ constructor toString',
    'hasOwnProperty length 0',
  ),
  '',
]

export function anyJson(random: Random, depth = 0): string {
  const inner = () => anyJson(random, depth + 1)
  const makes = [
    () => random.pick(NUMBERS),
    () => random.pick(STRINGS),
    () => random.pick(['true', 'false', 'null', 'undefined', 'True', '']),
    () => `[${many(random, 4, inner).join(random.chance(0.9) ? ',' : ',,')}]`,
    () => nested(random),
    () => `"${'a'.repeat(random.below(3000))}"`,
    () => objectOf(many(random, 6, () => [random.pick(NAMES), inner()])),
  ]
  return oneOf(random, depth > 4 ? makes.slice(0, 3) : makes)
}

function nested(random: Random): string {
  const depth = random.pick([10, 100, 1000, 4000])
  const [open, close] = random.pick([
    ['[', ']'],
    ['{"a":', '}'],
    ['{"__proto__":', '}'],
  ])
  return open.repeat(depth) + (random.chance(0.5) ? `1${close.repeat(depth)}` : '')
}

function objectOf(fields: readonly (readonly [string, string])[]): string {
  return `{${fields.map(([name, value]) => `"${name}":${value}`).join(',')}}`
}

function many<T>(random: Random, max: number, make: () => T): T[] {
  return Array.from({ length: random.below(max + 1) }, make)
}

/** An object with some fields missing, doubled, renamed, or of another type or spelling. */
export function nearlyJson(random: Random, value: Record<string, unknown>): string {
  const fields: [string, string][] = []
  for (const [name, own] of Object.entries(value)) {
    if (random.chance(0.08)) continue
    fields.push([name, random.chance(0.15) ? anyJson(random, 2) : JSON.stringify(own)])
    if (random.chance(0.08)) fields.push([name, anyJson(random, 2)])
  }
  if (random.chance(0.2)) fields.push([random.pick(NAMES), anyJson(random, 2)])
  const text = objectOf(fields)
  if (random.chance(2 / 3)) return text
  return oneOf(random, [
    () => `\xef\xbb\xbf${text}`,
    () => `${random.pick([' ', '\t', '\0', '\x0b', '\xa0', '//\n'])}${text}`,
    () => `${text}${random.pick(['}', ' ', '\0', text, ',', '\n\n'])}`,
    () => mutated(random, text),
  ])
}

/** The text with a few bytes changed, removed, doubled, or inserted. */
export function mutated(random: Random, text: string): string {
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

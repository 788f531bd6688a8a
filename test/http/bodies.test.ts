/**
 * Request bodies: received in pieces, and parsed in two ways. Bodies as the widget and most backends write them take a fast parser.
 * On mutated bodies its result must equal that of the general parser. POWGATE_TEST_BODIES sets how many bodies each parser gets.
 */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { BodyBytes } from '../../src/http/body.ts'
import * as schemas from '../../src/http/schemas.ts'
import { counters, nonces, seeded } from '../harness/arbitraries.ts'
import { FLAGS } from '../harness/client.ts'
import { Random } from '../harness/random.ts'

test('property: a body is its chunks, however it was cut, or none if it is too long', () => {
  const random = new Random(5)
  for (let round = 0; round < 500; round++) {
    const whole = random.bytes(random.below(200))
    const bytesMax = random.chance(0.5) ? whole.length : random.below(200)
    const body = new BodyBytes(bytesMax)
    let at = 0
    let hasRoom = true
    while (at < whole.length && random.chance(0.9)) {
      const to = Math.min(whole.length, at + random.below(20))
      // uWebSockets.js writes the next chunk to the same place.
      const chunk = copyOf(whole.subarray(at, to))
      hasRoom = hasRoom && body.add(chunk)
      new Uint8Array(chunk).fill(0)
      at = to
    }
    const bytes = hasRoom ? body.finish(copyOf(whole.subarray(at))) : undefined
    assert.deepEqual(bytes, whole.length <= bytesMax ? whole : undefined)
  }
})

test('a body that comes byte by byte is not copied anew for each', () => {
  const bytesMax = 2 ** 16
  const body = new BodyBytes(bytesMax)
  const chunk = new ArrayBuffer(1)
  const buffers = new Set<ArrayBufferLike>()
  for (let count = 1; count < bytesMax; count++) {
    assert.ok(body.add(chunk))
    buffers.add(body.finish(new ArrayBuffer(0))!.buffer)
  }
  assert.equal(body.finish(chunk)!.length, bytesMax)
  assert.equal(body.add(chunk), false)
  assert.ok(buffers.size <= 17, `${buffers.size} buffers`) // each of twice the size of the one before
})

const copyOf = (bytes: Uint8Array): ArrayBuffer => new Uint8Array(bytes).buffer

const BODIES = Number(process.env.POWGATE_TEST_BODIES ?? 4000)
const JSON_TYPE = 'application/json'

/** A name and the spelling of its value. */
type Member = readonly [name: string, value: string]

const fingerprints = fc.tuple(nonces, nonces).map(halves => halves.join(''))

const environments = fc
  .array(fc.boolean(), { minLength: FLAGS.length, maxLength: FLAGS.length })
  .map(values => JSON.stringify(Object.fromEntries(FLAGS.map((name, index) => [name, values[index]]))))

const solutions: fc.Arbitrary<readonly Member[]> = fc
  .tuple(nonces, counters, fc.nat(), fingerprints, environments)
  .map(([nonce, counter, solveTimeMs, fingerprint, environment]) => [
    ['nonce', `"${nonce}"`],
    ['counter', String(counter)],
    ['solveTimeMs', String(solveTimeMs)],
    ['fingerprintHash', `"${fingerprint}"`],
    ['environment', environment],
  ])

const tokens = fc
  .tuple(nonces, counters, fc.base64String({ minLength: 48, maxLength: 48 }), fingerprints)
  .map(([nonce, counter, claims, hmac]) => {
    const sealed = claims.replaceAll('+', '-').replaceAll('/', '_')
    return `1767268800000|${nonce}|${counter}|${sealed}|${hmac.slice(0, 43)}`
  })

const redemptions: fc.Arbitrary<readonly Member[]> = fc
  .record(
    { token: tokens, expectedIp: fc.oneof(fc.ipV4(), fc.ipV6()), idempotencyKey: fc.uuid() },
    { requiredKeys: ['token'] },
  )
  .map(some => Object.entries(some).map(([name, value]): Member => [name, `"${value}"`]))

const NUMBERS = [
  ...['7', '7.0', '7e0', '0', '-0', '01', '00', '-1', '1.5', '0.0', '+1', '0x1', ''],
  ...['9007199254740991', '9007199254740992', '9007199254740993', '12345678901234567', '1e400'],
  '9'.repeat(310), // Infinity, to JavaScript
]
const VALUES = [
  ...['null', 'true', 'false', '{}', '[]', '""', '"7"', '"::"', '"1.2.3.4"', '"01.2.3.4"', '"fe80::1%1"'],
  ...['"::ffff:1.2.3.4"', '"1:2"', `"${'a'.repeat(65)}"`, `"${'a'.repeat(1025)}"`],
  ...['{"webdriver":true}', '{"webdriver":"true"}'],
  ...['{"__proto__":{}}', '{"webdriver":true,"webdriver":false}'],
]

/** Changes a body as latin1 text, which has a character for each byte. */
type TextChange = (text: string) => string

const PIECES = [
  ...['"', '\\', ',', ':', '{', '}', '[', '|', '0', '1', 'a', 'A', 'g', '-', '.', 'e', ' ', '\t', '\n', '\r'],
  ...['\0', '\x7f', '\xa0', '\xff', '\xc3', '\xc3\xa9', '\xed\xa0\x80', '\xe2\x80\xa8', '\xef\xbb\xbf'],
  ...['true', 'false', '\\u0061', '__proto__'],
]

/** Changes a text before one of its characters, or at its end. */
const atPlace = (change: (text: string, at: number) => string) =>
  fc.nat(0xffff).map((place): TextChange => {
    const share = place / 0x10000 // the text, and so its length, is not known yet
    return text => change(text, Math.floor(share * (text.length + 1)))
  })
const splice = (text: string, at: number, deleted: number, inserted: string): string =>
  text.slice(0, at) + inserted + text.slice(at + deleted)
const lengths = fc.integer({ min: 1, max: 40 })

const textChanges: fc.Arbitrary<TextChange> = fc.oneof(
  fc
    .tuple(fc.constantFrom(0, 1), fc.constantFrom(...PIECES))
    .chain(([deleted, piece]) => atPlace((text, at) => splice(text, at, deleted, piece))),
  lengths.chain(length => atPlace((text, at) => splice(text, at, length, ''))),
  lengths.chain(length => atPlace((text, at) => text.slice(0, at + length) + text.slice(at))),
  atPlace((text, at) => splice(text, at, 1, text.slice(at, at + 1).toUpperCase())),
  atPlace((text, at) => {
    return splice(text, at, 1, `\\u${(text.charCodeAt(at) || 0).toString(16).padStart(4, '0')}`)
  }),
  // JSON allows white space here.
  fc.constantFrom(' ', '\n', '\t').map(space => (text: string) => text.replaceAll(/[:,]/g, `$&${space}`)),
)

const textOf = (members: readonly Member[]) =>
  `{${members.map(([name, value]) => `"${name}":${value}`).join(',')}}`

/** Bodies whose members come in another order, are left out, doubled, added or have another value, and whose text is changed. */
function changed(members: fc.Arbitrary<readonly Member[]>): fc.Arbitrary<Buffer> {
  const nothing = Array<undefined>(12).fill(undefined) // so that three of four bodies get no further member
  const added = fc.constantFrom(...nothing, 'x', '__proto__', 'expectedIp', 'idempotencyKey')
  // Half of the bodies keep their values; numbers stand twice, because the fast way has rules of its own for them.
  const values = fc.option(fc.constantFrom(...NUMBERS, ...NUMBERS, ...VALUES), { nil: undefined, freq: 1 })
  return members.chain(original =>
    fc
      .tuple(
        fc.oneof(
          { weight: 3, arbitrary: fc.constant(original) },
          { weight: 1, arbitrary: fc.array(fc.constantFrom(...original), { maxLength: 8 }) },
        ),
        fc.tuple(fc.nat(9), values),
        added,
        fc.array(textChanges, { maxLength: 2 }),
      )
      .map(([some, [at, value], name, changes]) => {
        const all = some.map((member, index): Member => (index === at && value ? [member[0], value] : member))
        const text = textOf(name === undefined ? all : [...all, [name, '"1.2.3.4"']])
        const whole = changes.reduce((now, change) => change(now), text)
        return Buffer.from(whole, 'latin1')
      }),
  )
}

interface Reader<Body> {
  /** Those of a good body. */
  readonly members: fc.Arbitrary<readonly Member[]>
  /** As endpoints call it: tries `usual`, and then the general way. */
  readonly parse: (bytes: Buffer, contentType: string) => schemas.Parsed<Body>
  readonly parseGenerally: (bytes: Buffer) => schemas.Parsed<Body>
  /** The fast parser; undefined for a body that is not written in the usual way. */
  readonly usual: (bytes: Buffer) => Body | undefined
}

function compare<Body>(name: string, { members, parse, parseGenerally, usual }: Reader<Body>) {
  test(`property: ${name} is read as the general way reads it, however its text is changed`, () => {
    const counts = { usual: 0, general: 0, refused: 0 }
    fc.assert(
      fc.property(changed(members), bytes => {
        const expected = parseGenerally(bytes)
        const actual = parse(bytes, JSON_TYPE)
        assert.deepEqual(actual, expected)
        // deepEqual does not see the order of fields.
        assert.equal(JSON.stringify(actual), JSON.stringify(expected))
        counts[usual(bytes) !== undefined ? 'usual' : expected.ok ? 'general' : 'refused']++
      }),
      seeded(BODIES),
    )
    for (const [way, count] of Object.entries(counts))
      assert.ok(count > BODIES / 20, `${way}: ${count} of ${BODIES}`)
  })
}

compare('a solution', {
  ...{ members: solutions, parse: schemas.parseSolution },
  ...{ parseGenerally: schemas.parseSolutionGenerally, usual: schemas.usualSolution },
})
compare('a redemption', {
  ...{ members: redemptions, parse: schemas.parseRedemption },
  ...{ parseGenerally: schemas.parseRedemptionGenerally, usual: schemas.usualRedemption },
})

test('a body with a misspelled field is refused if that is among its first sixteen unknown ones; no more are looked at, because guessing takes time', () => {
  const body = (unknown: number) =>
    Buffer.from(
      JSON.stringify({
        token: 'x',
        ...Object.fromEntries(Array.from({ length: unknown }, (_, index) => [`zzzzzz${index}`, 1])),
        expectedIP: '192.0.2.1',
      }),
    )
  assert.equal(schemas.parseRedemption(body(15), 'application/json').ok, false) // it is the sixteenth
  assert.equal(schemas.parseRedemption(body(16), 'application/json').ok, true)
})

/** The forms of POST /siteverify: against the parsers and writers that Node.js has. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { type FormReading, parseMultipart, parseUrlencoded } from '../../src/http/form.ts'
import { seeded } from '../harness/arbitraries.ts'

const urlencoded = (text: string | Buffer) => parseUrlencoded(Buffer.from(text))

function fieldsOf(reading: FormReading): Record<string, string> {
  assert(reading.ok, JSON.stringify(reading))
  return { ...reading.fields }
}

const NAME = fc.string({ unit: 'grapheme', maxLength: 12 }).map(name => name.toWellFormed())
const VALUE = fc.string({ unit: 'binary', maxLength: 40 }).map(value => value.toWellFormed())
const FIELDS = fc.uniqueArray(fc.tuple(NAME, VALUE), { maxLength: 32, selector: ([name]) => name })

test('urlencoded: what URLSearchParams writes is read back', () => {
  fc.assert(
    fc.property(FIELDS, fields => {
      const reading = urlencoded(new URLSearchParams(fields).toString())
      assert.deepEqual(Object.entries(fieldsOf(reading)).sort(), [...fields].sort())
    }),
    seeded(2000),
  )
})

test('urlencoded: of any text, what is accepted is read as URLSearchParams reads it', () => {
  const text = fc.string({
    unit: fc.constantFrom(...'ab=&?%+27cC3 ;é\u0000\ufeff', '%20', '%C3%A9'),
    maxLength: 30,
  })
  let accepted = 0
  fc.assert(
    fc.property(text, one => {
      const reading = urlencoded(one)
      if (!reading.ok) return
      accepted++
      assert.deepEqual(Object.entries({ ...reading.fields }), entriesOf(new URLSearchParams(`?${one}`)))
    }),
    seeded(20_000),
  )
  assert.ok(accepted > 1000, `${accepted} accepted`)
})

/** In the order in which an object has them. */
function entriesOf(parameters: URLSearchParams): [string, string][] {
  return Object.entries(Object.fromEntries(parameters))
}

const REFUSED: readonly { about: string; body: string | Buffer }[] = [
  { about: 'a percent sign alone', body: 'a=%' },
  { about: 'half an escape', body: 'a=%4' },
  { about: 'an escape that is not hexadecimal', body: 'a=%zz' },
  { about: 'an escaped byte that is not UTF-8', body: 'a=%ff' },
  { about: 'an escaped overlong form', body: 'a=%c0%80' },
  { about: 'an escaped surrogate', body: 'a=%ed%a0%80' },
  { about: 'an escape cut off inside a character', body: 'a=%e2%82' },
  { about: 'a wrong escape in a name', body: '%=a' },
  { about: 'a raw byte that is not UTF-8', body: Buffer.from([0x61, 0x3d, 0xff]) },
  { about: 'a field twice', body: 'a=1&b=2&a=1' },
  { about: 'a field twice, once escaped', body: 'a=1&%61=2' },
  { about: '33 fields', body: Array.from({ length: 33 }, (_, index) => `f${index}=`).join('&') },
]

for (const { about, body } of REFUSED) {
  test(`urlencoded: ${about} is refused`, () => assert.equal(urlencoded(body).ok, false))
}

test('urlencoded: delimiters without end are read in no time', () => {
  const startedAt = performance.now()
  assert.deepEqual(fieldsOf(urlencoded('&'.repeat(1_000_000))), {})
  assert.equal(urlencoded('&a'.repeat(500_000)).ok, false)
  assert.ok(performance.now() - startedAt < 2000)
})

test('urlencoded: a field may have any name', () => {
  const reading = urlencoded('__proto__=1&constructor=2&toString=3&=4&?=5')
  assert(reading.ok)
  assert.deepEqual(Object.entries(reading.fields), [
    ['__proto__', '1'],
    ['constructor', '2'],
    ['toString', '3'],
    ['', '4'],
    ['?', '5'],
  ])
})

test('multipart: what fetch writes is read back', async () => {
  const name = NAME.map(text => text.replace(/["\r\n]/g, ''))
  const value = VALUE.map(text => text.replace(/[\r\n]/g, ' ')) // a form has CRLF for each of them
  const fields = fc.uniqueArray(fc.tuple(name, value), { maxLength: 32, selector: ([one]) => one })
  await fc.assert(
    fc.asyncProperty(fields, async pairs => {
      const { bytes, contentType } = await multipart(pairs)
      const reading = fieldsOf(parseMultipart(bytes, contentType))
      assert.deepEqual(Object.entries(reading).sort(), [...pairs].sort())
    }),
    seeded(500),
  )
})

async function multipart(pairs: readonly (readonly [string, string | Blob])[]) {
  const form = new FormData()
  for (const [name, value] of pairs) {
    if (typeof value === 'string') form.append(name, value)
    else form.append(name, value)
  }
  const response = new Response(form)
  const bytes = Buffer.from(await response.arrayBuffer())
  return { bytes, contentType: response.headers.get('content-type')! }
}

const PART = '--b\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n'
const TYPE = 'multipart/form-data; boundary=b'

const MULTIPART: readonly { about: string; body: string; type?: string; fields: object | undefined }[] = [
  { about: 'one part', body: `${PART}--b--`, fields: { a: '1' } },
  { about: 'a line break at the end', body: `${PART}--b--\r\n`, fields: { a: '1' } },
  { about: 'no part', body: '--b--', fields: {} },
  {
    about: 'a quoted boundary',
    body: `${PART}--b--`,
    type: 'multipart/form-data; boundary="b"',
    fields: { a: '1' },
  },
  {
    about: 'a parameter before',
    body: `${PART}--b--`,
    type: 'multipart/form-data; x=y; BOUNDARY=b',
    fields: { a: '1' },
  },
  {
    about: 'other headers of the part',
    body: '--b\r\ncontent-type: text/plain\r\ncontent-disposition: form-data; name="a"\r\n\r\n1\r\n--b--',
    fields: { a: '1' },
  },
  { about: 'no boundary', body: `${PART}--b--`, type: 'multipart/form-data', fields: undefined },
  {
    about: 'an empty boundary',
    body: `${PART}--b--`,
    type: 'multipart/form-data; boundary=',
    fields: undefined,
  },
  {
    about: 'another boundary',
    body: `${PART}--b--`,
    type: 'multipart/form-data; boundary=c',
    fields: undefined,
  },
  { about: 'an empty body', body: '', fields: undefined },
  { about: 'no end', body: PART, fields: undefined },
  { about: 'text before it', body: `x\r\n${PART}--b--`, fields: undefined },
  { about: 'text after it', body: `${PART}--b--x`, fields: undefined },
  { about: 'a boundary with a tail', body: `${PART}--bc--`, fields: undefined },
  { about: 'a field twice', body: `${PART}${PART}--b--`, fields: undefined },
  { about: 'a part without headers', body: '--b\r\n\r\n1\r\n--b--', fields: undefined },
  {
    about: 'a part without a name',
    body: '--b\r\nContent-Disposition: form-data\r\n\r\n1\r\n--b--',
    fields: undefined,
  },
  {
    about: 'two names',
    body: '--b\r\nContent-Disposition: form-data; name="a"\r\nContent-Disposition: form-data; name="b"\r\n\r\n1\r\n--b--',
    fields: undefined,
  },
]

for (const { about, body, type = TYPE, fields } of MULTIPART) {
  test(`multipart: ${about} is ${fields === undefined ? 'refused' : 'read'}`, () => {
    const reading = parseMultipart(Buffer.from(body), type)
    if (fields === undefined) assert.equal(reading.ok, false)
    else assert.deepEqual(fieldsOf(reading), fields)
  })
}

test('multipart: a file is refused', async () => {
  const { bytes, contentType } = await multipart([['a', new Blob(['1'])]])
  assert.equal(parseMultipart(bytes, contentType).ok, false)
})

test('any bytes are answered, not thrown at', () => {
  const noise = fc.oneof(
    fc.uint8Array({ maxLength: 200 }).map(bytes => Buffer.from(bytes)),
    fc
      .string({
        unit: fc.constantFrom('--b', '\r\n', '--', 'Content-Disposition: form-data; name="', '"', 'a', '='),
        maxLength: 20,
      })
      .map(text => Buffer.from(text)),
  )
  fc.assert(
    fc.property(noise, bytes => {
      parseUrlencoded(bytes)
      parseMultipart(bytes, TYPE)
    }),
    seeded(20_000),
  )
})

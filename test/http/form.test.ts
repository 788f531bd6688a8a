/** The form parsers of POST /siteverify, compared with the parsers and writers of Node.js. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import fc from 'fast-check'
import { parseMultipart, parseUrlencoded } from '../../src/http/form-body.ts'
import type { Parsed } from '../../src/http/schemas.ts'
import { seeded } from '../harness/arbitraries.ts'

const urlencoded = (text: string | Buffer) => parseUrlencoded(Buffer.from(text))

function fieldsOf(reading: Parsed<Record<string, string>>): Record<string, string> {
  assert(reading.ok, JSON.stringify(reading))
  return { ...reading.body }
}

const NAME = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 12 }).map(name => name.toWellFormed()),
  fc.constantFrom('', '?', '__proto__', 'constructor', 'toString'),
)
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

test('a body that is compressed is named as such, as a form of either type', () => {
  const body = gzipSync('a=b')
  for (const reading of [parseUrlencoded(body), parseMultipart(body, 'multipart/form-data; boundary=b')])
    assert.match(JSON.stringify(reading), /compressed with gzip; send it without Content-Encoding/)
})

test('urlencoded: of any text, what is accepted is read as URLSearchParams reads it', () => {
  const unit = fc.constantFrom(...'ab=&?%+27cC3 ;é\u0000\ufeff', '%20', '%C3%A9')
  const text = fc.string({ unit, maxLength: 30 })
  let accepted = 0
  fc.assert(
    fc.property(text, one => {
      const reading = urlencoded(one)
      if (!reading.ok) return
      accepted++
      const expected = Object.fromEntries(new URLSearchParams(`?${one.replace(/^\ufeff/, '')}`)) // an object orders numeric names first
      assert.deepEqual(Object.entries({ ...reading.body }), Object.entries(expected))
    }),
    seeded(5000),
  )
  assert.ok(accepted > 1000, `${accepted} accepted`)
})

const REFUSED: Readonly<Record<string, string | Buffer>> = {
  'a percent sign alone': 'a=%',
  'half an escape': 'a=%4',
  'an escape that is not hexadecimal': 'a=%zz',
  'an escaped byte that is not UTF-8': 'a=%ff',
  'an escaped overlong form': 'a=%c0%80',
  'an escaped surrogate': 'a=%ed%a0%80',
  'an escape cut off inside a character': 'a=%e2%82',
  'a wrong escape in a name': '%=a',
  'a raw byte that is not UTF-8': Buffer.from([0x61, 0x3d, 0xff]),
  'a field twice': 'a=1&b=2&a=1',
  'a field twice, once escaped': 'a=1&%61=2',
  '33 fields': Array.from({ length: 33 }, (_, index) => `f${index}=`).join('&'),
}

test('urlencoded: what is wrong or ambiguous is refused', () => {
  for (const [about, body] of Object.entries(REFUSED)) assert.equal(urlencoded(body).ok, false, about)
})

test('urlencoded: delimiters without end are read in no time', () => {
  const before = process.cpuUsage()
  assert.deepEqual(fieldsOf(urlencoded('&'.repeat(1_000_000))), {})
  assert.equal(urlencoded('&a'.repeat(500_000)).ok, false)
  const { user, system } = process.cpuUsage(before)
  assert.ok(user + system < 2e6, `${user + system} us`)
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
  for (const [name, value] of pairs) form.append(name, value as string)
  const response = new Response(form)
  const bytes = Buffer.from(await response.arrayBuffer())
  return { bytes, contentType: response.headers.get('content-type')! }
}

const NAMED = 'Content-Disposition: form-data; name="a"'
const PART = `--b\r\n${NAMED}\r\n\r\n1\r\n`
const FORM = `${PART}--b--`
const BOUNDARY = '; boundary=b'

type Multipart = Readonly<Record<string, readonly [body: string, parameters?: string]>>

/** Each has one field, `a`, with the value 1. */
const MULTIPART: Multipart = {
  'one part': [FORM],
  'a line break at the end': [`${FORM}\r\n`],
  'a quoted boundary': [FORM, '; boundary="b"'],
  'a parameter before': [FORM, '; x=y; BOUNDARY=b'],
  'other headers of the part': [
    `--b\r\ncontent-type: text/plain\r\n${NAMED.toLowerCase()}\r\n\r\n1\r\n--b--`,
  ],
}

const NO_MULTIPART: Multipart = {
  'no boundary': [FORM, ''],
  'an empty boundary': [FORM, '; boundary='],
  'another boundary': [FORM, '; boundary=c'],
  'an empty body': [''],
  'no end': [PART],
  'text before it': [`x\r\n${FORM}`],
  'text after it': [`${FORM}x`],
  'a boundary with a tail': [`${PART}--bc--`],
  'a field twice': [PART + FORM],
  'a part without headers': ['--b\r\n\r\n1\r\n--b--'],
  'a part without a name': ['--b\r\nContent-Disposition: form-data\r\n\r\n1\r\n--b--'],
  'two names': [`--b\r\n${NAMED}\r\n${NAMED.replace('a"', 'b"')}\r\n\r\n1\r\n--b--`],
}

const parsed = ([body, parameters = BOUNDARY]: readonly [string, string?]) =>
  parseMultipart(Buffer.from(body), `multipart/form-data${parameters}`)

test('multipart: good forms are read; what is wrong or ambiguous is refused, and a file too', async () => {
  assert.deepEqual(fieldsOf(parsed(['--b--'])), {}, 'no part is no field')
  for (const [about, form] of Object.entries(MULTIPART))
    assert.deepEqual(fieldsOf(parsed(form)), { a: '1' }, about)
  for (const [about, form] of Object.entries(NO_MULTIPART)) assert.equal(parsed(form).ok, false, about)
  const { bytes, contentType } = await multipart([['a', new Blob(['1'])]])
  assert.equal(parseMultipart(bytes, contentType).ok, false)
})

test('any bytes as a form are parsed or refused, without an exception', () => {
  const part = fc.constantFrom('--b', '\r\n', '--', 'Content-Disposition: form-data; name="', '"', 'a', '=')
  const text = fc.string({ unit: part, maxLength: 20 })
  const noise = fc.oneof(fc.uint8Array({ maxLength: 200 }), text).map(bytes => Buffer.from(bytes as string))
  const read = (bytes: Buffer) => {
    parseUrlencoded(bytes)
    parseMultipart(bytes, `multipart/form-data${BOUNDARY}`)
  }
  fc.assert(fc.property(noise, read), seeded(5000))
})

/**
 * The contract (docs/reference/contract.md), §2.2, §4.2, §4.3 and §7: request bodies that are no JSON object or too large, and invalid
 * fields of a solution, are refused. Such a request spends neither the nonce nor the token in it.
 */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { FLAGS } from '../harness/client.ts'
import { type Answer, call } from '../harness/http.ts'
import type { TestSite } from '../harness/service.ts'
import { words } from '../harness/values.ts'
import {
  assertNotRedeemed,
  assertNotSiteverified,
  assertPassed,
  assertRedeemed,
  assertRefused,
  assertSiteverified,
} from './answers.ts'
import { refusesAndSpendsNothing, type Subject, type Visitor } from './support.ts'

const BODY_BYTES_MAX = 8192

/** Endpoints that take JSON: what a good request to each has, and how it shows that it was taken or refused. */
const VERIFY = {
  path: '/verify',
  credentials: ({ siteKey }: TestSite) => ({ 'X-Site-Key': siteKey }),
  goodBody: (visitor: Visitor) => visitor.solved(),
  assertTaken: assertPassed,
  assertRefused,
}
const VERIFY_TOKEN = {
  path: '/verify-token',
  credentials: ({ apiKey }: TestSite) => ({ Authorization: `Bearer ${apiKey}` }),
  goodBody: async (visitor: Visitor) => ({ token: await visitor.token() }),
  assertTaken: assertRedeemed,
  assertRefused: assertNotRedeemed,
}
const SITEVERIFY = {
  path: '/siteverify',
  credentials: () => ({}),
  goodBody: async (visitor: Visitor) => ({ secret: visitor.site.apiKey, response: await visitor.token() }),
  assertTaken: assertSiteverified,
  assertRefused: (answer: Answer, status: 400 | 413) =>
    assertNotSiteverified(answer, 'bad-request', status === 400 ? 200 : status),
}
const ENDPOINTS = [VERIFY, VERIFY_TOKEN, SITEVERIFY]
type Endpoint = (typeof ENDPOINTS)[number]

const JSON_TYPE = { 'Content-Type': 'application/json' }

function send(
  { url }: Subject,
  { path, credentials }: Endpoint,
  visitor: Visitor,
  body: string | Buffer,
  headers: Record<string, string> = JSON_TYPE,
): Promise<Answer> {
  const all = { ...credentials(visitor.site), ...headers }
  return call(url + path, { method: 'POST', headers: all, body, from: visitor.from })
}

/** Makes each body from the JSON text of a good one. */
type Bodies = Readonly<Record<string, (good: string) => string | Buffer>>

/** The good body with one more member, of which the name and value are given as bytes. */
const withMember = (good: string, ...member: (string | Buffer)[]): Buffer =>
  Buffer.concat([`${good.slice(0, -1)},`, ...member, '}'].map(part => Buffer.from(part)))

const bytes = (...values: number[]): Buffer => Buffer.from(values)

const nested = (open: string, middle: string, close: string, depth: number): string =>
  open.repeat(depth) + middle + close.repeat(depth)

/** An unknown field is ignored, but must be sound: UTF-8, JSON, no `__proto__` at any depth, few brackets (BRACKETS_MAX of schemas.ts). */
const HOSTILE: Bodies = {
  empty: () => '',
  'white space': () => ' \n',
  'not JSON': () => 'nonce=1&counter=2',
  'cut off': good => good.slice(0, -1),
  'followed by another': good => good + good,
  'with a NaN': good => withMember(good, '"extra":NaN'),
  'with a raw control character': good => withMember(good, '"extra":"\n"'),
  'after two byte order marks': good => `\uFEFF\uFEFF${good}`,
  'compressed with gzip': good => gzipSync(good),
  // So close to a known name, it is refused; other unknown fields are ignored.
  'with a mistyped field': good =>
    withMember(good, '"expectedIP":"192.0.2.1","solve_time_ms":1,"Environment":{}'),
  'in UTF-16': good => Buffer.from(good, 'utf16le'),
  'an array': () => '[]',
  null: () => 'null',
  'an empty object': () => '{}',
  'with a byte that is not UTF-8': good => withMember(good, '"extra":"', bytes(0xff), '"'),
  'with an overlong form': good => withMember(good, '"extra":"', bytes(0xc0, 0x80), '"'),
  'with an encoded surrogate': good => withMember(good, '"extra":"', bytes(0xed, 0xa0, 0x80), '"'),
  'with UTF-8 cut off': good => withMember(good, '"extra":"', bytes(0xe2, 0x82), '"'),
  'with __proto__': good => withMember(good, '"__proto__":{}'),
  'with __proto__ in escapes': good => withMember(good, '"\\u005f_proto\\u005F_":{}'),
  'with __proto__ inside an array of an unknown field': good =>
    withMember(good, '"extra":[1,[{"__proto__":1}]]'),
  'arrays as deep as fit': () => nested('[', '', ']', BODY_BYTES_MAX / 2),
  'objects as deep as fit': () => nested('{"a":', '0', '}', Math.floor((BODY_BYTES_MAX - 1) / 6)),
  'with a known field nested 3000 deep': good =>
    withMember(good, '"expectedIp":', nested('[', '', ']', 3000)),
  'with fields twice, once in escapes': good =>
    `${good.slice(0, -1)},${good.slice(1).replace('e', '\\u0065')}`,
}

/** In a body to /verify all is the visitor's. To /siteverify, siteverify.ts has these cases. */
const NOT_AT: Readonly<Record<string, readonly string[]>> = {
  '/verify': ['with fields twice, once in escapes'],
  '/siteverify': ['an empty object', 'with a mistyped field'],
}
const bodiesFor = ({ path }: Endpoint): Bodies =>
  Object.fromEntries(Object.entries(HOSTILE).filter(([about]) => !NOT_AT[path]?.includes(about)))

/** What a page of any origin may send without a preflight. */
const UNASKED_TYPES = ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=a']
const LIKE_JSON = ['application/jsonp', 'application/json-patch+json', 'text/plain; application/json']
const WRONG_CONTENT_TYPES = [undefined, ...UNASKED_TYPES, ...LIKE_JSON]
const RIGHT_CONTENT_TYPES = ['application/json; charset=utf-8', 'Application/JSON', 'application/json ;q=1']

/** JSON of exactly this many bytes: an unknown field fills it up. */
export function padded(body: object, bytes: number): string {
  const text = `${JSON.stringify(body).slice(0, -1)},"padding":""}`
  return text.replace(/""}$/, `"${'x'.repeat(bytes - Buffer.byteLength(text))}"}`)
}

export function hostileBodyTests(subject: Subject): void {
  for (const endpoint of ENDPOINTS) {
    const { path, goodBody, assertTaken, assertRefused } = endpoint
    // Several refused bodies are made of one good body, which must still be good afterwards.
    refusesAndSpendsNothing({
      cases: Object.entries(bodiesFor(endpoint)),
      nameOf: ([about]) => `§7 ${path} 400, invalid body: ${about}`,
      make: async () => {
        const visitor = subject.visitor()
        return { visitor, good: JSON.stringify(await goodBody(visitor)) }
      },
      assertRefused: async ([, make], { visitor, good }) => {
        const body = make(good)
        assert.ok(Buffer.byteLength(body) <= BODY_BYTES_MAX)
        assertRefused(await send(subject, endpoint, visitor, body), 400, 'invalid-body')
      },
      assertUnspent: async ({ visitor, good }) => assertTaken(await send(subject, endpoint, visitor, good)),
    })

    for (const [how, headers] of [
      ['', JSON_TYPE],
      [', also of unannounced length', { ...JSON_TYPE, 'Transfer-Encoding': 'chunked' }],
    ] as const)
      test(`§4.2, §4.3 request body, decided: ${path} takes 8192 bytes, 8193 give 413 and spend nothing${how}`, async () => {
        const visitor = subject.visitor()
        const good = await goodBody(visitor)
        const sendOf = (bytes: number) => send(subject, endpoint, visitor, padded(good, bytes), headers)
        assertRefused(await sendOf(BODY_BYTES_MAX + 1), 413, 'body-too-large')
        assertTaken(await sendOf(BODY_BYTES_MAX))
      })
  }

  // siteverify.ts has the types of /siteverify.
  for (const endpoint of [VERIFY, VERIFY_TOKEN]) {
    const { path, goodBody, assertTaken, assertRefused } = endpoint
    for (const contentType of WRONG_CONTENT_TYPES)
      test(`§4.2, §4.3 Content-Type is required, application/json: ${path} ${contentType ?? 'none'} gives 400`, async () => {
        const visitor = subject.visitor()
        const good = JSON.stringify(await goodBody(visitor))
        const wrong = contentType === undefined ? {} : { 'Content-Type': contentType }
        assertRefused(await send(subject, endpoint, visitor, good, wrong), 400, 'content-type')
        assertTaken(await send(subject, endpoint, visitor, good))
      })

    for (const contentType of RIGHT_CONTENT_TYPES)
      test(`§4.2, §4.3 Content-Type: ${path} takes ${contentType} for application/json`, async () => {
        const visitor = subject.visitor()
        const good = JSON.stringify(await goodBody(visitor))
        assertTaken(await send(subject, endpoint, visitor, good, { 'Content-Type': contentType }))
      })
  }

  test('§4.2 request body, decided: the cap counts bytes, not characters; a much larger body gives 413 as well', async () => {
    for (const body of [`"${'é'.repeat(4096)}"`, 'x'.repeat(800_000)])
      assertRefused(await subject.visitor().verify(body), 413, 'body-too-large')
  })
}

const HEX_32 = '0123456789abcdef0123456789abcdef'
const HEX_64 = HEX_32 + HEX_32

const quoted = (...texts: string[]): string[] => texts.map(text => `"${text}"`)

/** JSON texts of wrong values; undefined leaves the field out. */
const WRONG: Readonly<Record<string, readonly (string | undefined)[]>> = {
  nonce: [
    undefined,
    ...words('null 5 [] {} ""'),
    `["${HEX_32}"]`,
    ...quoted(HEX_32.toUpperCase(), `${HEX_32.slice(0, -1)}F`, `0x${HEX_32.slice(2)}`, ` ${HEX_32.slice(1)}`),
    ...['', 'g', ' ', '\uff10'].map(end => `"${HEX_32.slice(1)}${end}"`),
    ...['0', '\\n', '\\u0000'].map(end => `"${HEX_32}${end}"`),
  ],
  counter: [
    undefined,
    `5${'0'.repeat(400)}`,
    ...words(
      'null true [] [5] {} {"valueOf":5} "5" "5e0" "" -1 1.5 -0 -0.0',
      '9007199254740992 9007199254740993 18446744073709551621 1e999',
      '-1e999',
    ),
  ],
  solveTimeMs: ['-1', '-0.5', '"1"', 'true', '[]', '{}', '1e999'],
  fingerprintHash: [
    undefined,
    ...words('null 5 [] ""'),
    ...quoted(HEX_64.slice(1), `${HEX_64}0`, `${HEX_64.slice(1)}g`, `${HEX_64}\\n`),
  ],
  environment: ['[]', '[true]', '"webdriver"', 'true', '0'],
  action: ['"log in"', '"é"', '"a\\nb"', `"${'a'.repeat(101)}"`, '5', '[]'],
  cdata: ['"a/b"', '"a|b"', `"${'a'.repeat(256)}"`, '{}'],
}

/** Values at the bounds, which the body's form allows; whether they verify is another matter. */
const ALLOWED: Readonly<Record<string, readonly string[]>> = {
  counter: ['0', '9007199254740991', '7.0', '70e-1'],
  solveTimeMs: ['0', '0.25', '1e15'],
  fingerprintHash: [`"${HEX_64.toUpperCase()}"`],
  environment: ['{}', '{"webdriver":false}', '{"somethingNew":[1,{}]}'],
}

/** JSON of a body with this JSON text as the value of a field; undefined leaves the field out. */
export function withField(body: object, field: string, json: string | undefined): string {
  const others = Object.entries(body).filter(([name]) => name !== field)
  const members = others.map(([name, value]) => `"${name}":${JSON.stringify(value)}`)
  if (json !== undefined) members.push(`"${field}":${json}`)
  return `{${members.join(',')}}`
}

/** `name` is the field as the refusal names it. */
const WRONG_FIELDS: readonly { field: string; json: string | undefined; name: string }[] = [
  ...Object.entries(WRONG).flatMap(([field, values]) => values.map(json => ({ field, json, name: field }))),
  ...FLAGS.flatMap(flag =>
    ['null', '1', '0', '"true"', '[]', '{}'].map(value => ({
      field: 'environment',
      json: `{"${flag}":${value}}`,
      name: `environment.${flag}`,
    })),
  ),
]

export function solutionFieldTests(subject: Subject): void {
  refusesAndSpendsNothing({
    cases: WRONG_FIELDS,
    nameOf: ({ name, json }) => `§2.2 ${name}: ${json ?? 'missing'} gives 400 and names the field`,
    make: async () => {
      const visitor = subject.visitor()
      return { visitor, solution: await visitor.solved() }
    },
    assertRefused: async ({ field, json, name }, { visitor, solution }) => {
      const answer = await visitor.verify(withField(solution, field, json))
      assertRefused(answer, 400, 'invalid-body')
      assert.ok(answer.json.error.includes(name), `"${answer.json.error}" does not name ${name}`)
      assert.equal(answer.json.field, name)
    },
    assertUnspent: async ({ visitor, solution }) => assertPassed(await visitor.verify(solution)),
  })

  for (const [field, values] of Object.entries(ALLOWED))
    test(`§2.2 ${field}: ${values.join(' and ')} are of the right form`, async () => {
      for (const json of values) {
        const visitor = subject.visitor()
        const answer = await visitor.verify(withField(await visitor.solved(), field, json))
        assert.equal(answer.status, 200, answer.text)
      }
    })

  test('§2.2, decided: fields that are not in the table are ignored', async () => {
    const visitor = subject.visitor()
    const extra = { extra: 1, token: null, passed: true, constructor: { prototype: {} } }
    assertPassed(await visitor.verify({ ...(await visitor.solved()), ...extra }))
  })
}

/**
 * Parses untrusted JSON bodies, with schemas compiled at start. Usual bodies, as the widget and most backends write them, are matched
 * by patterns, which saves 2.0 of 2.7 us at POST /verify and 3.6 of 3.9 at /verify-token. A test ensures that both give the same.
 */

import { isUtf8 } from 'node:buffer'
import type { Refusal } from '../domain/outcome.ts'
import { ACTION_CHARACTERS_MAX, CDATA_CHARACTERS_MAX } from '../domain/page.ts'
import { isCounter } from '../domain/pow.ts'
import { Ajv, type ErrorObject, type ValidateFunction } from '../packages/ajv.ts'
import Type from '../packages/typebox.ts'
import { COUNTER_MAX } from '../protocol/proof.ts'
import { ENVIRONMENT_FLAGS, type Redemption, type Solution } from '../protocol/wire.ts'
import { nearest } from '../words/nearest.ts'

const FIELDS_NOTE =
  'Null counts as left out. Unknown fields are ignored, unless one seems to be a mistyped one.'

export const NONCE = Type.String({
  pattern: '^[0-9a-f]{32}$',
  description: '32 lowercase hexadecimal characters, from GET /challenge.',
})

export const SolutionSchema = Type.Object(
  {
    nonce: NONCE,
    counter: Type.Integer({
      minimum: 0,
      maximum: COUNTER_MAX,
      description:
        'The hash of the nonce and this counter, by the puzzle of the challenge, starts with at least `difficulty` zero bits.',
    }),
    solveTimeMs: Type.Optional(
      Type.Number({
        minimum: 0,
        description: 'How long it took by the clock of the browser, in milliseconds.',
      }),
    ),
    fingerprintHash: Type.String({
      pattern: '^[0-9a-fA-F]{64}$',
      description: 'SHA-256 of whatever the client reads of the browser, in hexadecimal.',
    }),
    environment: Type.Optional(
      Type.Object(Object.fromEntries(ENVIRONMENT_FLAGS.map(name => [name, Type.Optional(Type.Boolean())])), {
        description: 'Signs of a browser without a person. Without it the score is lower.',
      }),
    ),
    action: Type.Optional(
      Type.String({
        pattern: `^[A-Za-z0-9_/-]{0,${ACTION_CHARACTERS_MAX}}$`,
        description: 'What the visitor is about to do, as the page names it. POST /siteverify returns it.',
      }),
    ),
    cdata: Type.Optional(
      Type.String({
        pattern: `^[A-Za-z0-9_-]{0,${CDATA_CHARACTERS_MAX}}$`,
        description: 'Data of the page. POST /siteverify returns it.',
      }),
    ),
  },
  { description: FIELDS_NOTE },
)

export const TOKEN = Type.String({
  minLength: 1,
  maxLength: 1024,
  description: 'The token that came with the form.',
})
export const EXPECTED_IP = Type.String({
  maxLength: 64,
  description:
    "The visitor's IPv4 or IPv6 address as the backend sees it. Recommended: the token must be its.",
})
export const IDEMPOTENCY_KEY = Type.String({
  minLength: 1,
  maxLength: 64,
  description:
    'New for each form. A retry with the same key, API key and token gets the first answer again: a constant key undoes single use.',
})

export const RedemptionSchema = Type.Object(
  {
    token: TOKEN,
    expectedIp: Type.Optional(EXPECTED_IP),
    idempotencyKey: Type.Optional(IDEMPOTENCY_KEY),
  },
  { description: FIELDS_NOTE },
)

/** Compiling the meta-schema takes a tenth of a worker's start, so a test checks the schemas against it. */
export const ajv = new Ajv({ strict: true, meta: false, validateSchema: false })
const validateSolution = ajv.compile<Solution>(SolutionSchema)
const validateRedemption = ajv.compile<Redemption>(RedemptionSchema)

export interface Unparsed {
  readonly ok: false
  readonly refusal: Refusal
}

export type Parsed<Body> =
  /** `ignored` is the name of a field that powgate does not know, if any. */
  { readonly ok: true; readonly body: Body; readonly ignored?: string | undefined } | Unparsed

export function parseSolution(bytes: Buffer, contentType: string): Parsed<Solution> {
  if (!isJsonType(contentType)) return unparsed({ reason: 'content-type' })
  const body = usualSolution(bytes)
  return body === undefined ? parseSolutionGenerally(bytes) : { ok: true, body }
}

export function parseRedemption(bytes: Buffer, contentType: string): Parsed<Redemption> {
  if (!isJsonType(contentType)) return unparsed({ reason: 'content-type' })
  const body = usualRedemption(bytes)
  return body === undefined ? parseRedemptionGenerally(bytes) : { ok: true, body }
}

/** Accepts `7e0` for the counter 7. This yields no second token: the nonce is spent once, and the token has the digits. */
export function parseSolutionGenerally(bytes: Buffer): Parsed<Solution> {
  const parsed = parseBody(bytes, validateSolution, SOLUTION_FIELDS)
  // JSON allows -0, which is no counter.
  if (parsed.ok && !isCounter(parsed.body.counter)) return wrongField('counter')
  return parsed
}

export function parseRedemptionGenerally(bytes: Buffer): Parsed<Redemption> {
  return parseBody(bytes, validateRedemption, REDEMPTION_FIELDS, REDEMPTION_MEMBERS)
}

const JSON_TYPE = /^application\/json[ \t]*(?:;|$)/i

export function isJsonType(contentType: string): boolean {
  return JSON_TYPE.test(contentType)
}

/** @param members finds members that may stand once in an object: where text is joined by hand, a visitor's could hide the backend's */
export function readJson(body: Buffer, members?: RegExp): Parsed<unknown> {
  const text = textOf(body)
  if (typeof text !== 'string') return text
  if (text === '') return unparsed({ reason: 'body-empty' })
  if (text.length > USUAL_BYTES_MAX && hasManyBrackets(text))
    return unparsed({ reason: 'body-shape', detail: TOO_MANY_BRACKETS })
  try {
    const body: unknown = JSON.parse(text)
    if (text.search(PROTO_MEMBER) !== -1) return unparsed({ reason: 'body-shape' })
    // JSON.parse keeps the last of equal members alone, at any depth.
    if (members && text.match(members)?.length !== JSON.stringify(body).match(members)?.length)
      return unparsed({ reason: 'body-shape', detail: 'A field stands twice in the body.' })
    return { ok: true, body }
  } catch {
    return unparsed({ reason: 'body-not-json' })
  }
}

/** Finds members of these names in JSON, also in escapes. A quote after a backslash is one within a string. */
export function membersNamed(...names: readonly string[]): RegExp {
  const spelled = (letter: string) => `(?:${letter}|\\\\u00${letter.charCodeAt(0).toString(16)})`
  return new RegExp(
    `(?<!\\\\)"(?:${names.map(name => [...name].map(spelled).join('')).join('|')})"\\s*:`,
    'gi',
  )
}

/** It does no harm here, but might in later code. A reviver would find it too, but takes a millisecond for 8 KB of numbers. */
const PROTO_MEMBER = membersNamed('__proto__')

/** Decodes UTF-8 without the byte order mark that some libraries write, or says why the body is none. */
export function textOf(body: Buffer): string | Unparsed {
  if (isUtf8(body)) {
    const text = body.toString('utf8')
    return text.charCodeAt(0) === BYTE_ORDER_MARK ? text.slice(1) : text
  }
  const isGzip = body[0] === 0x1f && body[1] === 0x8b
  return unparsed({ reason: 'body-not-utf8', detail: isGzip ? COMPRESSED : undefined })
}

const BYTE_ORDER_MARK = 0xfeff
const COMPRESSED = 'The body is compressed with gzip; send it without Content-Encoding.'

/** Opening brackets in a body above USUAL_BYTES_MAX; honest ones have two. Without the bound, 7 KB of them cost as much as three requests. */
const BRACKETS_MAX = 32
const TOO_MANY_BRACKETS = `The body has more than ${BRACKETS_MAX} opening brackets.`

function hasManyBrackets(text: string): boolean {
  let brackets = 0
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index)
    if ((code === 0x5b || code === 0x7b) && ++brackets > BRACKETS_MAX) return true
  }
  return false
}

const SOLUTION_FIELDS = Object.keys(SolutionSchema.properties)
const REDEMPTION_FIELDS = Object.keys(RedemptionSchema.properties)
const REDEMPTION_MEMBERS = membersNamed(...REDEMPTION_FIELDS)

function parseBody<Body>(
  bytes: Buffer,
  validate: ValidateFunction<Body>,
  known: readonly string[],
  members?: RegExp,
): Parsed<Body> {
  const json = readJson(bytes, members)
  if (!json.ok) return json
  const value = json.body
  // Many libraries write what they lack as null.
  if (isObject(value)) for (const name of known) if (value[name] === null) delete value[name]
  if (validate(value)) {
    const detail = misspelling(value as object, known)
    if (detail !== undefined) return unparsed({ reason: 'body-shape', detail })
    const ignored = ignoredField(value as object, known)
    return { ok: true, body: value, ...(ignored !== undefined && { ignored }) }
  }
  const error = validate.errors![0]!
  const field = fieldOf(error)
  if (field === '') return unparsed({ reason: 'body-shape', detail: 'The body is JSON, but not an object.' })
  return wrongField(field, error)
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}

/** A message cuts the name of an unknown field to this length. */
const NAME_CHARACTERS_MAX = 40
/** A guess takes up to 20 us, and 8 KB have room for 1,400 fields: without this bound, a body would cost as much as 30 requests. */
const GUESSED_FIELDS_MAX = 16

/** Returns a message about a probably misspelled field, such as expectedIP, if the right one is missing: its check would be skipped. */
export function misspelling(value: object, known: readonly string[]): string | undefined {
  const letters = (name: string) => name.toLowerCase().replaceAll(/[^a-z]/g, '')
  const byLetters = new Map(known.map(name => [letters(name), name]))
  const unknown = Object.keys(value).filter(name => !known.includes(name))
  for (const name of unknown.slice(0, GUESSED_FIELDS_MAX)) {
    const expected = byLetters.get(letters(name)) ?? nearest(name, known)
    if (expected !== undefined && !(expected in value))
      return `The field ${JSON.stringify(name.slice(0, NAME_CHARACTERS_MAX))} is unknown: ${expected} is expected.`
  }
  return undefined
}

/** Only such a field's name goes into the log: any other could be a secret that a visitor typed. */
const PLAIN_NAME = /^[a-z][\w.-]{0,30}$/i

/** Returns the name of a field that powgate does not know, if it may be logged. */
export function ignoredField(value: object, known: readonly string[]): string | undefined {
  return Object.keys(value).find(name => !known.includes(name) && PLAIN_NAME.test(name))
}

export function unparsed(refusal: Refusal): Unparsed {
  return { ok: false, refusal }
}

/** What messages say of each field, except for the flags of `environment`. They never repeat a value, which may be a secret. */
const EXPECTED: Readonly<Record<string, string>> = {
  nonce: 'the 32 lowercase hexadecimal characters that GET /challenge gave',
  counter: 'an integer from 0 to 2^53 - 1',
  solveTimeMs: 'a number of milliseconds, not negative',
  fingerprintHash: 'a SHA-256 in 64 hexadecimal characters',
  environment: 'an object of flags',
  action: `up to ${ACTION_CHARACTERS_MAX} letters, digits, "_", "-" and "/"`,
  cdata: `up to ${CDATA_CHARACTERS_MAX} letters, digits, "_" and "-"`,
  token: 'the text of the form field powgate-token',
  expectedIp: 'an IPv4 or IPv6 address',
  idempotencyKey: '1 to 64 characters',
}
const EMPTY_TOKEN = 'the form was sent without JavaScript, or before the widget had finished'

/** The validator's own words are for programmers. */
function fieldProblem(field: string, error?: Pick<ErrorObject, 'keyword'>): string {
  if (field === 'token' && error?.keyword === 'minLength') return `token is empty: ${EMPTY_TOKEN}.`
  const problem = error?.keyword === 'required' ? 'is missing' : 'is wrong'
  return `${field} ${problem}; expected ${EXPECTED[field] ?? 'true or false'}.`
}

function wrongField(field: string, error?: ErrorObject) {
  return unparsed({ reason: 'body-shape', detail: fieldProblem(field, error), field })
}

/** The path of the field that is wrong, such as `environment.webdriver`; empty for the body itself. */
function fieldOf({ keyword, instancePath, params }: ErrorObject): string {
  const path = instancePath.slice(1).replaceAll('/', '.')
  return keyword === 'required' ? (params as { missingProperty: string }).missingProperty : path
}

/** The widget's bodies have up to 350 bytes. */
const USUAL_BYTES_MAX = 512
const INTEGER = '(0|[1-9][0-9]*)'
/** The flags come in the order in which the widget writes them. */
const ENVIRONMENT = ENVIRONMENT_FLAGS.map(name => `"${name}":(?:(true)|false)`).join()
const SOLUTION = new RegExp(
  `^\\{"nonce":"([0-9a-f]{32})","counter":${INTEGER},"solveTimeMs":${INTEGER},"fingerprintHash":"([0-9a-f]{64})","environment":\\{${ENVIRONMENT}\\}\\}$`,
)
/** The fields come in the order in which the client and the recipes write them. Python's json writes the spaces. */
const REDEMPTION =
  /^\{"token": ?"([\w|-]+)"(?:, ?"expectedIp": ?"([\d.:A-Fa-f]{1,64})")?(?:, ?"idempotencyKey": ?"([\w-]{1,64})")?\}$/

export function usualSolution(bytes: Buffer): Solution | undefined {
  const match = matchOf(SOLUTION, bytes)
  const counter = Number(match?.[2])
  if (match === null || !isCounter(counter)) return undefined
  return {
    nonce: match[1]!,
    counter,
    solveTimeMs: Number(match[3]), // Cannot be Infinity with so few digits.
    fingerprintHash: match[4]!,
    // The groups have the order of ENVIRONMENT_FLAGS.
    environment: {
      webdriver: match[5] !== undefined,
      chromeAbsent: match[6] !== undefined,
      swiftShader: match[7] !== undefined,
      noPlugins: match[8] !== undefined,
      notificationDenied: match[9] !== undefined,
      zeroScreen: match[10] !== undefined,
      noLanguages: match[11] !== undefined,
    },
  }
}

export function usualRedemption(bytes: Buffer): Redemption | undefined {
  const match = matchOf(REDEMPTION, bytes)
  if (match === null) return undefined
  const [token, expectedIp, idempotencyKey] = [match[1]!, match[2], match[3]]
  const redemption: Redemption = { token }
  if (expectedIp !== undefined) redemption.expectedIp = expectedIp
  if (idempotencyKey !== undefined) redemption.idempotencyKey = idempotencyKey
  return redemption
}

function matchOf(form: RegExp, bytes: Buffer): RegExpExecArray | null {
  return bytes.length > USUAL_BYTES_MAX ? null : form.exec(bytes.toString('latin1', 0, bytes.length))
}

/** Parses POST /siteverify: urlencoded (as for reCAPTCHA and hCaptcha), JSON or multipart/form-data (as for Turnstile). */

import type { Reason, Refusal } from '../domain/outcome.ts'
import { API_KEY_PATTERN, SITE_KEY_PATTERN, type Site } from '../domain/site.ts'
import type { ErrorObject } from '../packages/ajv.ts'
import Type, { type Static } from '../packages/typebox.ts'
import type { Redemption } from '../protocol/wire.ts'
import { parseMultipart, parseUrlencoded } from './form-body.ts'
import {
  ajv,
  EXPECTED_IP,
  IDEMPOTENCY_KEY,
  ignoredField,
  isJsonType,
  membersNamed,
  misspelling,
  type Parsed,
  readJson,
  TOKEN,
  unparsed,
} from './schemas.ts'

export const SiteverifySchema = Type.Object(
  {
    secret: Type.String({ pattern: API_KEY_PATTERN, description: 'A secret API key of the site.' }),
    response: TOKEN,
    remoteip: Type.Optional(EXPECTED_IP),
    sitekey: Type.Optional(
      Type.String({
        pattern: SITE_KEY_PATTERN,
        description: 'The site key that the API key must belong to, as hCaptcha has it.',
      }),
    ),
    idempotency_key: Type.Optional(IDEMPOTENCY_KEY),
  },
  {
    description:
      'The field names of reCAPTCHA, hCaptcha and Turnstile. A field that is empty or null counts as left out; unknown fields are ignored.',
  },
)

/** The fields of an urlencoded form (`readForm`) at every path but Turnstile's. */
export const SiteverifyFormSchema = Type.Omit(SiteverifySchema, ['idempotency_key'], {
  description:
    'SiteverifyRequest for a body in which a backend may have left the token unencoded: see there.',
})

export type SiteverifyRequest = Static<typeof SiteverifySchema>

const KNOWN = Object.keys(SiteverifySchema.properties)
const KNOWN_MEMBERS = membersNamed(...KNOWN)
const validate = ajv.compile<SiteverifyRequest>(SiteverifySchema)

/** The fields as they were sent, unchecked. */
export type SiteverifyFields = Readonly<Record<string, unknown>>

const URLENCODED_TYPE = /^application\/x-www-form-urlencoded[ \t]*(?:;|$)/i
const MULTIPART_TYPE = /^multipart\/form-data[ \t]*;/i

/**
 * The body's fields take precedence over the query's. MediaWiki's ConfirmEdit and Ruby's recaptcha gem send everything in the
 * query, and axios with `params` sends a body `{}` too.
 */
export function readSiteverify(
  body: Buffer,
  contentType: string,
  query: string,
  isTurnstile: boolean,
): Parsed<SiteverifyFields> {
  if (query === '') return readBody(body, contentType, isTurnstile)
  const inQuery = readForm(Buffer.from(query), false)
  if (body.length === 0 || !inQuery.ok) return inQuery
  const inBody = readBody(body, contentType, isTurnstile)
  if (!inBody.ok) return inBody
  const secrets = [inQuery.body, inBody.body].map(secretOf).filter(secret => secret !== undefined)
  if (new Set(secrets).size > 1)
    return unparsed({ reason: 'body-shape', detail: 'The secret of the query is not that of the body.' })
  const given = Object.entries(inBody.body).filter(([, value]) => !isLeftOut(value)) // an empty field must not hide the query's
  return { ok: true, body: Object.assign(Object.create(null), inQuery.body, Object.fromEntries(given)) }
}

function readBody(bytes: Buffer, contentType: string, isTurnstile: boolean): Parsed<SiteverifyFields> {
  if (URLENCODED_TYPE.test(contentType)) return readForm(bytes, isTurnstile)
  if (MULTIPART_TYPE.test(contentType)) return parseMultipart(bytes, contentType)
  if (!isJsonType(contentType)) return unparsed({ reason: 'content-type' })
  const json = readJson(bytes, KNOWN_MEMBERS)
  if (!json.ok) return json
  const { body } = json
  if (typeof body !== 'object' || body === null || Array.isArray(body))
    return unparsed({ reason: 'body-shape' })
  return { ok: true, body: body as SiteverifyFields }
}

/**
 * Some backends write the posted token into a query or form without encoding it. The visitor can then append an `idempotency_key`,
 * and one token would be good many times. Only Turnstile has this field, so elsewhere it is refused.
 */
function readForm(bytes: Buffer, mayHaveKey: boolean): Parsed<SiteverifyFields> {
  const form = parseUrlencoded(bytes)
  if (!form.ok || mayHaveKey || isLeftOut(form.body.idempotency_key)) return form
  const detail = 'idempotency_key is expected in a JSON or multipart body.'
  return unparsed({ reason: 'body-shape', detail })
}

/** Comes before `parseSiteverify`, because the secret tells which site it is. */
export function secretOf({ secret }: SiteverifyFields): unknown {
  return isLeftOut(secret) ? undefined : secret
}

/** Backends that know no address send an empty field. */
function isLeftOut(value: unknown): boolean {
  return value === undefined || value === null || value === ''
}

/** A misspelled one of these is refused: an unknown field is ignored, which would skip its check. */
const CHECKED_FIELDS = ['remoteip', 'idempotency_key']

export function parseSiteverify(fields: SiteverifyFields, site: Site): Parsed<Redemption> {
  const asked: object = Object.fromEntries(Object.entries(fields).filter(([, value]) => !isLeftOut(value)))
  const detail = misspelling(asked, CHECKED_FIELDS)
  if (detail !== undefined) return unparsed({ reason: 'body-shape', detail })
  if (!validate(asked)) return unparsed(refusalFor(validate.errors![0]!))
  const { response, remoteip, sitekey, idempotency_key } = asked
  // A test key accepts any site key.
  if (sitekey !== undefined && sitekey !== site.record.siteKey && site.test === undefined)
    return unparsed({ reason: 'site-key-other-site' })
  return {
    ok: true,
    ignored: ignoredField(fields, KNOWN),
    body: {
      token: response,
      ...(remoteip === undefined ? {} : { expectedIp: remoteip }),
      ...(idempotency_key === undefined ? {} : { idempotencyKey: idempotency_key }),
    },
  }
}

const REASON_OF_FIELD: Readonly<Record<string, Reason>> = {
  secret: 'credentials-malformed',
  response: 'token-malformed',
  remoteip: 'expected-ip-malformed',
  sitekey: 'site-key-other-site',
}

function refusalFor({ keyword, instancePath }: ErrorObject): Refusal {
  if (keyword === 'required') return { reason: 'token-missing' } // endpoints/siteverify.ts has refused a missing secret
  const field = instancePath.slice(1)
  if (field === 'idempotency_key')
    return { reason: 'body-shape', detail: 'idempotency_key is wrong; expected 1 to 64 characters.' }
  return { reason: REASON_OF_FIELD[field]! }
}

/** The OpenAPI document's responses: refusals, from the table of outcomes (domain/outcome.ts), and headers. */

import type { ErrorStyle } from '../domain/endpoint.ts'
import type { Reason } from '../domain/outcome.ts'
import { SIGNALS } from '../domain/site-fields.ts'
import { answerTo, refusalBody } from '../http/replies.ts'
import Type, { type TSchema } from '../packages/typebox.ts'

export type Json = Readonly<Record<string, unknown>>

interface OperationRefusals {
  readonly style: ErrorStyle
  readonly isCrossOrigin: boolean
  readonly reasons: readonly Reason[]
}

type RefusalResponse = Json & { readonly content: ReturnType<typeof jsonContent> }

export function refusalResponses(operation: OperationRefusals): Record<string, RefusalResponse> {
  const responses: Record<string, RefusalResponse> = {}
  for (const [status, reasons] of byStatus(operation)) {
    responses[status] = {
      description: DESCRIPTIONS[status] ?? 'Refused.',
      headers: headersOf(operation, status),
      content: jsonContent(refusalSchema(operation, reasons), refusalExamples(operation, reasons)),
    }
  }
  return responses
}

const DESCRIPTIONS: Readonly<Record<number, string>> = {
  400: 'Something about the request is wrong. It spends nothing, but for a token with `score-too-low`, and a solved nonce that is too cheap by now (`expired-nonce`).',
  401: 'There is no valid API key.',
  403: 'Not from here: the site, its origin or the address.',
  405: 'Any other method.',
  413: 'The body is longer than the service takes (8 KiB unless configured otherwise).', // POWGATE_BODY_MAX_BYTES
  429: 'Too many requests. A client that waits for `Retry-After` is admitted.',
  503: 'The service cannot tell now. Try again after `Retry-After`.',
}

function byStatus({ style, reasons }: OperationRefusals): Map<number, Reason[]> {
  const groups = new Map<number, Reason[]>()
  for (const reason of reasons) {
    const { status } = answerTo(reason, style)
    groups.set(status, [...(groups.get(status) ?? []), reason])
  }
  return groups
}

const MESSAGE = Type.String({ minLength: 1, description: 'For a person; may change.' })
const FIELD = Type.Optional(Type.String({ description: 'The field of the body that is wrong.' }))

function refusalSchema({ style }: OperationRefusals, reasons: readonly Reason[]): TSchema {
  const codes = [...new Set(reasons.map(reason => answerTo(reason, style).code))]
  if (style === 'siteverify')
    return Type.Object({
      success: Type.Literal(false),
      'error-codes': Type.Array(Type.Enum(codes), { minItems: 1, maxItems: 1 }),
      messages: Type.Array(MESSAGE, { minItems: 1, maxItems: 1 }),
    })
  return Type.Object({
    ...(style === 'redemption' ? { success: Type.Literal(false) } : {}),
    error: MESSAGE,
    code: Type.Enum(codes, { description: 'Stable.' }),
    ...(reasons.includes('body-shape') ? { field: FIELD } : {}),
  })
}

function refusalExamples({ style }: OperationRefusals, reasons: readonly Reason[]): Json {
  const examples: Record<string, Json> = {}
  for (const reason of reasons)
    examples[answerTo(reason, style).code] ??= { value: refusalBody({ reason }, style) }
  return examples
}

/** @param examples by name, each `{ value }` */
export function jsonContent(schema: TSchema | Json, examples: Json) {
  return { 'application/json': { schema, examples } }
}

const CORS_HEADERS = ['Access-Control-Allow-Origin', 'Access-Control-Expose-Headers']
const LIMIT_HEADERS = ['Retry-After', 'RateLimit', 'RateLimit-Policy']
const HEADERS_BY_STATUS: Readonly<Record<number, readonly string[]>> = {
  401: ['WWW-Authenticate'],
  405: ['Allow'],
  429: LIMIT_HEADERS,
  503: LIMIT_HEADERS, // no limit refused, but clients that wait by one of these wait here too (http/replies.ts)
}

export function headersOf({ isCrossOrigin }: Pick<OperationRefusals, 'isCrossOrigin'>, status: number): Json {
  return headerRefs([
    ...(HEADERS_BY_STATUS[status] ?? []),
    'Cache-Control',
    'X-Request-Id',
    ...(isCrossOrigin ? CORS_HEADERS : []),
  ])
}

export function headerRefs(names: readonly string[]): Json {
  return Object.fromEntries(names.map(name => [name, { $ref: `#/components/headers/${name}` }]))
}

function header(description: string, example: string | number, more: Json = {}): Json {
  return { description, required: true, schema: { type: 'string', ...more }, example }
}

export const HEADERS: Readonly<Record<string, Json>> = {
  'Retry-After': header('Whole seconds after which the request would be admitted.', 17, {
    type: 'integer',
    minimum: 1,
  }),
  RateLimit: header(
    'The limit that refused (with 503 the first one), and the seconds to wait (draft-ietf-httpapi-ratelimit-headers).',
    '"address";r=0;t=17',
    { pattern: '^"[a-z-]+";r=0;t=\\d+$' },
  ),
  'RateLimit-Policy': header(
    'All limits of the endpoint, per 60 seconds.',
    '"address";q=60;w=60, "address-site";q=30;w=60',
    { pattern: '^"[a-z-]+";q=\\d+;w=60(, "[a-z-]+";q=\\d+;w=60)*$' },
  ),
  'X-Powgate-Signals': header('What the site asks the widget to read of the browser.', 'flags', {
    enum: SIGNALS,
  }),
  'X-Request-Id': {
    description: 'Names the request in the log of the service, where it has been given a name.',
    schema: { type: 'string', pattern: '^[\\w.:=+/@-]{1,128}$' },
    example: 'n5kVq0yTzUE-4f',
  },
  'WWW-Authenticate': header('How to authenticate.', 'Bearer', { const: 'Bearer' }),
  Allow: header('The methods that the path takes.', 'POST, OPTIONS', { pattern: '^[A-Z]+(, [A-Z]+)*$' }),
  'Cache-Control': header('Whether the answer may be kept.', 'no-store'),
  'Access-Control-Allow-Origin': header('Any origin may read the answer.', '*', { const: '*' }),
  'Access-Control-Expose-Headers': header(
    'Headers that scripts may read.',
    'Retry-After, RateLimit, RateLimit-Policy, X-Request-Id, X-Powgate-Signals',
  ),
}

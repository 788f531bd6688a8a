/** GET /openapi.json: the public interface as OpenAPI 3.1, from the schemas of requests, the table of outcomes and answer-schemas.ts. */

import { gzipSync } from 'node:zlib'
import { ENDPOINT_NAMES, ENDPOINTS, type EndpointName } from '../domain/endpoint.ts'
import type { Reason } from '../domain/outcome.ts'
import { SITE_KEY_PATTERN } from '../domain/site.ts'
import { type ContentRoute, staticFile } from '../http/content.ts'
import { RedemptionSchema, SolutionSchema } from '../http/schemas.ts'
import { SiteverifyFormSchema, SiteverifySchema } from '../http/siteverify-body.ts'
import {
  ChallengeSchema,
  EXAMPLES,
  FailedSchema,
  PassedSchema,
  RedeemedSchema,
  SiteverifySuccessSchema,
} from './answer-schemas.ts'
import { HEADERS, headerRefs, headersOf, type Json, jsonContent, refusalResponses } from './responses.ts'

export function openapiRoute(version: string): ContentRoute {
  const content = Buffer.from(JSON.stringify(openapiDocument(version)))
  const answer = staticFile(content, {
    contentType: 'application/json',
    compressed: { gzip: gzipSync(content) },
    headers: [
      ['Access-Control-Allow-Origin', '*'],
      ['Cross-Origin-Resource-Policy', 'cross-origin'],
    ],
  })
  return {
    path: '/openapi.json',
    methods: ['get', 'head'],
    takesPreflight: true,
    // A client must ask each time: an old copy could describe an old version.
    handle: (exchange, asked) => answer(exchange, asked, 'no-cache'),
  }
}

const DESCRIPTION = `Self-hosted proof-of-work human verification.

A browser asks for a challenge (GET /challenge), finds a counter whose hash starts with as many zero bits as the difficulty
(\`sha256\`: SHA-256 of the nonce followed by the counter in decimal; \`hashwx\`: HashWX of the counter, in the function whose
seed is SHA-256 of the nonce followed by the counter / 65536, rounded down), and gets a token for it (POST /verify). The backend of the site
redeems the token, once and within five minutes, by POST /verify-token, or by POST /siteverify with the field names of the
large hosted CAPTCHAs.

Limits, lifetimes and the longest body are those that the service has unless configured otherwise. Other paths are
answered with 404 and an error body. Clients should ignore fields that they do not know.`

export function openapiDocument(version: string): Json {
  return {
    openapi: '3.1.1',
    info: {
      title: 'powgate',
      version,
      description: DESCRIPTION,
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: '/' }],
    tags: [
      { name: 'browser', description: 'Called by the widget, from any origin.' },
      { name: 'backend', description: 'Called by the backend of a site. No CORS.' },
    ],
    paths: Object.fromEntries(ENDPOINT_NAMES.map(name => [`/${name}`, pathItem(name)])),
    components: {
      schemas: {
        Challenge: ChallengeSchema,
        Solution: SolutionSchema,
        Passed: PassedSchema,
        Failed: FailedSchema,
        Redemption: RedemptionSchema,
        Redeemed: RedeemedSchema,
        SiteverifyRequest: SiteverifySchema,
        SiteverifyForm: SiteverifyFormSchema,
        SiteverifySuccess: SiteverifySuccessSchema,
      },
      parameters: { SiteKey: SITE_KEY_PARAMETER },
      headers: HEADERS,
      securitySchemes: {
        apiKey: {
          type: 'http',
          scheme: 'bearer',
          description: 'A secret API key of the site: `sk_`, 8 characters, `_`, 43 characters.',
        },
      },
    },
  }
}

const SITE_REASONS = [
  'site-key-missing',
  'site-key-malformed',
  'site-unknown',
  'site-inactive',
  'origin-refused',
] as const
const JSON_REASONS = ['content-type', 'body-empty', 'body-shape', 'body-too-large'] as const
const COMMON_REASONS = [
  'length-ambiguous',
  'method-not-allowed',
  'rate-limited',
  'store-unavailable',
  'overloaded',
] as const
const REDEMPTION_REASONS = [
  'expected-ip-malformed',
  'credentials-missing',
  'credentials-malformed',
  'token-malformed',
  'token-expired',
  'token-forgotten',
  'token-other-site',
  'token-other-address',
  'token-used',
  'score-too-low',
] as const

const SITEVERIFY_EXAMPLES = { redemption: { value: EXAMPLES.siteverifyRequest } }
const SITEVERIFY_CONTENT: Json = { schema: schemaRef('SiteverifyRequest'), examples: SITEVERIFY_EXAMPLES }

interface Operation {
  readonly operationId: string
  readonly summary: string
  readonly description: string
  readonly security: readonly Json[]
  /** The keys are content types. */
  readonly bodyContent?: Json
  /** Describes the response with 200. */
  readonly answer: string
  /** Names of headers (`HEADERS`) that no other endpoint has. */
  readonly ownHeaders?: readonly string[]
  /** Names in `components.schemas` of its bodies. */
  readonly schemas: readonly string[]
  /** Example bodies by name, each `{ value }`. */
  readonly examples: Json
  /**
   * Reasons for its refusals, without COMMON_REASONS. Those with the same status and code are one answer: the first is its example, and
   * the others may be left out. But list `body-shape`, by which the answer has its property `field`.
   */
  readonly reasons: readonly Reason[]
}

const OPERATIONS: Readonly<Record<EndpointName, Operation>> = {
  challenge: {
    operationId: 'getChallenge',
    summary: 'Ask for a proof-of-work challenge',
    description:
      'Bound to the address that asks. At most 60 a minute per address, 30 per address and site. While Redis is away it goes on from memory, unless configured otherwise.',
    security: [],
    answer: 'A challenge.',
    ownHeaders: ['X-Powgate-Signals'],
    schemas: ['Challenge'],
    examples: { challenge: { value: EXAMPLES.challenge } },
    reasons: SITE_REASONS,
  },
  verify: {
    operationId: 'verify',
    summary: 'Submit a solution, get a token',
    description:
      'From the address that asked for the challenge. A wrong counter is a failed verification and spends nothing; a solved nonce is spent whether or not its score passes. At most 30 a minute per address, 20 per address and site.',
    security: [],
    bodyContent: jsonContent(schemaRef('Solution'), { solution: { value: EXAMPLES.solution } }),
    answer: 'Passed or failed.',
    schemas: ['Passed', 'Failed'],
    examples: { passed: { value: EXAMPLES.passed }, failed: { value: EXAMPLES.failed } },
    reasons: [
      ...SITE_REASONS,
      ...JSON_REASONS,
      'nonce-forged',
      'nonce-expired',
      'nonce-used',
      'nonce-other-address',
    ],
  },
  'verify-token': {
    operationId: 'verifyToken',
    summary: 'Redeem a token, once',
    description:
      'Fails closed: without its store it answers 503. The call may have run all the same, so retry with the same idempotencyKey. A mismatch of site or expectedIp does not spend the token. At most 100 a minute per calling address, 200 per API key; /siteverify draws on the same limits.',
    security: [{ apiKey: [] }],
    bodyContent: jsonContent(schemaRef('Redemption'), { redemption: { value: EXAMPLES.redemption } }),
    answer: 'The token is good, and now used.',
    schemas: ['Redeemed'],
    examples: { redeemed: { value: EXAMPLES.redeemed } },
    reasons: [...JSON_REASONS, ...REDEMPTION_REASONS],
  },
  siteverify: {
    operationId: 'siteverify',
    summary: 'Redeem a token, once, with the field names of the large hosted CAPTCHAs',
    description:
      'The same as POST /verify-token, with the same limits and the same single use. Every verdict is 200, as it is there: look at `success`. Also served at /recaptcha/api/siteverify, which takes GET with a query too, and at /turnstile/v0/siteverify, where a success has an empty list `error-codes` too, and an urlencoded form may have `idempotency_key`.',
    security: [],
    bodyContent: {
      'application/x-www-form-urlencoded': { ...SITEVERIFY_CONTENT, schema: schemaRef('SiteverifyForm') },
      'application/json': SITEVERIFY_CONTENT,
      'multipart/form-data': SITEVERIFY_CONTENT,
    },
    answer: 'The verdict.',
    schemas: ['SiteverifySuccess'],
    examples: { success: { value: EXAMPLES.siteverifySuccess } },
    reasons: [...JSON_REASONS, ...REDEMPTION_REASONS, 'sent-by-page', 'body-not-form', 'token-missing'],
  },
}

function pathItem(endpoint: EndpointName): Json {
  const { method, isCrossOrigin, errorStyle: style } = ENDPOINTS[endpoint]
  const { bodyContent, answer, ownHeaders = [], schemas, examples, reasons, ...asIs } = OPERATIONS[endpoint]
  const refusals = { style, isCrossOrigin, reasons: [...reasons, ...COMMON_REASONS] }
  // Most refusals of /siteverify have status 200 like its successes, so they share a response.
  const { 200: refusalsWith200, ...responses } = refusalResponses(refusals)
  const refused = refusalsWith200?.content['application/json']
  const anyOf = [...schemas.map(schemaRef), ...(refused === undefined ? [] : [refused.schema])]
  const allExamples = { ...examples, ...refused?.examples }
  const content = jsonContent(anyOf.length === 1 ? anyOf[0]! : { anyOf }, allExamples)
  const headers = { ...headersOf(refusals, 200), ...headerRefs(ownHeaders) } // successes have the headers of any answer with 200
  const operation = {
    ...asIs,
    tags: [isCrossOrigin ? 'browser' : 'backend'],
    ...(isCrossOrigin ? { parameters: [{ $ref: '#/components/parameters/SiteKey' }] } : {}),
    ...(bodyContent === undefined ? {} : { requestBody: { required: true, content: bodyContent } }),
    responses: { ...responses, 200: { description: answer, headers, content } },
  }
  return { [method]: operation }
}

const SITE_KEY_PARAMETER: Json = {
  name: 'X-Site-Key',
  in: 'header',
  required: true,
  description: 'The public key of the site.',
  schema: { type: 'string', pattern: SITE_KEY_PATTERN },
  example: EXAMPLES.siteKey,
}

function schemaRef(name: string): Json {
  return { $ref: `#/components/schemas/${name}` }
}

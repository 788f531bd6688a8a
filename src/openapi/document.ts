/**
 * GET /openapi.json: the public interface as an OpenAPI 3.1 document. Its sources are the schemas that validate requests,
 * the table of outcomes, and schemas of the answers, which a test compares with real answers.
 */

import { gzipSync } from 'node:zlib'
import { ENDPOINT_NAMES, ENDPOINTS, type EndpointName } from '../domain/endpoint.ts'
import { SITE_KEY_PATTERN } from '../domain/site.ts'
import { type ContentRoute, StaticFile } from '../http/content.ts'
import { RedemptionSchema, SolutionSchema } from '../http/schemas.ts'
import { SiteverifySchema } from '../http/siteverify.ts'
import {
  HEADERS,
  headerRefs,
  headersOf,
  jsonContent,
  type Node,
  type OperationRefusals,
  refusalResponses,
  refusalsOf,
} from './responses.ts'
import {
  CHALLENGE,
  ChallengeSchema,
  EXAMPLE_SITE_KEY,
  FailedSchema,
  PASSED,
  PassedSchema,
  REDEEMED,
  REDEMPTION,
  RedeemedSchema,
  SITEVERIFY_REQUEST,
  SITEVERIFY_SUCCESS,
  SiteverifySuccessSchema,
  SOLUTION,
} from './schemas.ts'

/** Clients revalidate each time: an old copy could describe an old version. */
const CACHE_CONTROL = 'no-cache'

/** Any page may load the document. */
const FILE_HEADERS = [
  ['Access-Control-Allow-Origin', '*'],
  ['Cross-Origin-Resource-Policy', 'cross-origin'],
] as const

/** @param version of the service */
export function openapiRoute(version: string): ContentRoute {
  const content = Buffer.from(JSON.stringify(openapiDocument(version)))
  const file = new StaticFile(content, {
    contentType: 'application/json',
    compressed: { gzip: gzipSync(content) },
    headers: FILE_HEADERS,
  })
  return {
    path: '/openapi.json',
    methods: ['get', 'head'],
    handle: (exchange, asked) => file.answer(exchange, asked, CACHE_CONTROL),
  }
}

const DESCRIPTION = `Self-hosted proof-of-work human verification.

A browser asks for a challenge (GET /challenge), finds a counter (SHA-256 of the nonce followed by the counter in decimal
starts with as many zero bits as the difficulty), and gets a token for it (POST /verify). The backend of the site
redeems the token, once and within five minutes, by POST /verify-token, or by POST /siteverify with the field names of the
large hosted CAPTCHAs.

Limits, lifetimes and the longest body are those that the service has unless configured otherwise. Other paths are
answered with 404 and an error body. Clients should ignore fields that they do not know.`

export function openapiDocument(version: string): Node {
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
      { name: 'about', description: 'This document.' },
    ],
    paths: {
      ...Object.fromEntries(ENDPOINT_NAMES.map(name => [`/${name}`, pathItem(name)])),
      '/openapi.json': { get: getDocument() },
    },
    components: {
      schemas: {
        Challenge: ChallengeSchema,
        Solution: SolutionSchema,
        Passed: PassedSchema,
        Failed: FailedSchema,
        Redemption: RedemptionSchema,
        Redeemed: RedeemedSchema,
        SiteverifyRequest: SiteverifySchema,
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

/** The operation of each endpoint. */
const OPERATIONS: Readonly<Record<EndpointName, () => Node>> = {
  challenge: getChallenge,
  verify,
  'verify-token': verifyToken,
  siteverify,
}

function pathItem(endpoint: EndpointName): Node {
  const { method, isCrossOrigin } = ENDPOINTS[endpoint]
  const operation = { [method]: OPERATIONS[endpoint]() }
  return isCrossOrigin ? { ...operation, options: preflight(endpoint) } : operation
}

const SITE_KEY_PARAMETER: Node = {
  name: 'X-Site-Key',
  in: 'header',
  required: true,
  description: 'The public key of the site.',
  schema: { type: 'string', pattern: SITE_KEY_PATTERN },
  example: EXAMPLE_SITE_KEY,
}

const SITE_KEY_REF: Node = { $ref: '#/components/parameters/SiteKey' }

function schemaRef(name: string): Node {
  return { $ref: `#/components/schemas/${name}` }
}

/** The answer of status 200 as it is described here, and all refusals. */
function responsesOf(refusals: OperationRefusals, description: string, schema: Node, examples: Node): Node {
  return {
    ...refusalResponses(refusals),
    200: { description, headers: headersOf(refusals, 200), content: jsonContent(schema, examples) },
  }
}

function getChallenge(): Node {
  return {
    operationId: 'getChallenge',
    tags: ['browser'],
    summary: 'Ask for a proof-of-work challenge',
    description:
      'Bound to the address that asks. At most 60 a minute per address, 30 per address and site. While Redis is away it goes on from memory, unless configured otherwise.',
    security: [],
    parameters: [SITE_KEY_REF],
    responses: responsesOf(refusalsOf('challenge'), 'A challenge.', schemaRef('Challenge'), {
      challenge: { value: CHALLENGE },
    }),
  }
}

function verify(): Node {
  const results = { anyOf: [schemaRef('Passed'), schemaRef('Failed')] }
  return {
    operationId: 'verify',
    tags: ['browser'],
    summary: 'Submit a solution, get a token',
    description:
      'From the address that asked for the challenge. A wrong counter is a failed verification and spends nothing; a solved nonce is spent whether or not its score passes. At most 30 a minute per address, 20 per address and site.',
    security: [],
    parameters: [SITE_KEY_REF],
    requestBody: {
      required: true,
      content: jsonContent(schemaRef('Solution'), { solution: { value: SOLUTION } }),
    },
    responses: responsesOf(refusalsOf('verify'), 'Passed or failed.', results, {
      passed: { value: PASSED },
      failed: { value: { token: null, passed: false, expiresAt: null } },
    }),
  }
}

function verifyToken(): Node {
  return {
    operationId: 'verifyToken',
    tags: ['backend'],
    summary: 'Redeem a token, once',
    description:
      'Fails closed: without its store it answers 503. The call may have run all the same, so retry with the same idempotencyKey. A mismatch of site or expectedIp does not spend the token. At most 100 a minute per calling address, 200 per API key; /siteverify draws on the same limits.',
    security: [{ apiKey: [] }],
    requestBody: {
      required: true,
      content: jsonContent(schemaRef('Redemption'), { redemption: { value: REDEMPTION } }),
    },
    responses: responsesOf(
      refusalsOf('verify-token'),
      'The token is good, and now used.',
      schemaRef('Redeemed'),
      { redeemed: { value: REDEEMED } },
    ),
  }
}

function siteverify(): Node {
  const refusals = refusalsOf('siteverify')
  const { schema, examples } = (
    refusalResponses(refusals)[200] as { content: Record<string, { schema: Node; examples: Node }> }
  ).content['application/json']!
  const verdicts = { anyOf: [schemaRef('SiteverifySuccess'), schema] }
  const content = {
    schema: schemaRef('SiteverifyRequest'),
    examples: { redemption: { value: SITEVERIFY_REQUEST } },
  }
  return {
    operationId: 'siteverify',
    tags: ['backend'],
    summary: 'Redeem a token, once, with the field names of the large hosted CAPTCHAs',
    description:
      'The same as POST /verify-token, with the same limits and the same single use. Every verdict is 200, as it is there: look at `success`.',
    security: [],
    requestBody: {
      required: true,
      content: {
        'application/x-www-form-urlencoded': content,
        'application/json': content,
        'multipart/form-data': content,
      },
    },
    responses: responsesOf(refusals, 'The verdict.', verdicts, {
      success: { value: SITEVERIFY_SUCCESS },
      ...examples,
    }),
  }
}

function preflight(path: EndpointName): Node {
  return {
    operationId: `${path}Preflight`,
    tags: ['browser'],
    summary: 'CORS preflight',
    security: [],
    responses: {
      200: {
        description: 'Any origin may ask.',
        headers: headerRefs([
          'Access-Control-Allow-Origin',
          'Access-Control-Expose-Headers',
          'Access-Control-Allow-Methods',
          'Access-Control-Allow-Headers',
          'Access-Control-Max-Age',
          'Cache-Control',
          'X-Request-Id',
        ]),
        content: { 'application/json': { schema: { type: 'object', maxProperties: 0 } } },
      },
    },
  }
}

const DOCUMENT_HEADERS = [
  'ETag',
  'Vary',
  'Cache-Control',
  'X-Content-Type-Options',
  'Access-Control-Allow-Origin',
  'Cross-Origin-Resource-Policy',
]

function getDocument(): Node {
  const { 405: wrongMethod } = refusalResponses({
    style: 'plain',
    isCrossOrigin: false,
    reasons: ['method-not-allowed'],
  })
  return {
    operationId: 'getDocument',
    tags: ['about'],
    summary: 'This document',
    security: [],
    responses: {
      200: {
        description: 'An OpenAPI 3.1 document.',
        headers: headerRefs([...DOCUMENT_HEADERS, 'Content-Encoding']),
        content: { 'application/json': { schema: { type: 'object' } } },
      },
      304: {
        description: 'It is still the version that If-None-Match names.',
        headers: headerRefs(DOCUMENT_HEADERS),
      },
      405: wrongMethod,
    },
  }
}

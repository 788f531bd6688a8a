/** What an Exchange answers: the form of each reply, and refusals in each endpoint's format. Endpoints write the bodies of successes. */

import { STATUS_CODES } from 'node:http'
import type { Ending, RefusalSubject } from '../domain/ending.ts'
import type { ErrorStyle } from '../domain/endpoint.ts'
import { OUTCOMES, type Reason, type Refusal } from '../domain/outcome.ts'

export type HeaderList = readonly (readonly [name: string, value: string])[]

export interface Reply {
  readonly status: number
  /** What log and metrics are told. */
  readonly ending?: Ending | undefined
  /** JSON, a file or a page. With 304, only its length is sent. */
  readonly body: Buffer | string
  readonly headers: HeaderList
  /** True if `headers` has the Content-Type too, as for a file or a page, which gets no X-Request-Id either. Other replies are JSON. */
  readonly hasOwnType?: true
  /** The Content-Type of JSON and constant headers, joined by HEADER_BREAK, in place of JSON_TYPE or CORS_JSON_TYPE. */
  readonly jsonType?: string
}

export const STATUS_LINES: Readonly<Record<number, string>> = Object.fromEntries(
  Object.entries(STATUS_CODES).map(([status, text]) => [status, `${status} ${text}`]),
)

/**
 * Joins several headers into one value, which uWebSockets.js writes as it is, and saves 0.25 us. Values must be constants: a client's
 * line break would inject a header.
 */
export const HEADER_BREAK = '\r\n'
export const JSON_TYPE = `application/json${HEADER_BREAK}Cache-Control: no-store`
export const CORS_JSON_TYPE = `${JSON_TYPE}${HEADER_BREAK}Access-Control-Allow-Origin: *${HEADER_BREAK}Access-Control-Expose-Headers: Retry-After, RateLimit, RateLimit-Policy, X-Request-Id, X-Powgate-Signals`

/** CORS_JSON_TYPE with one more header. Written apart, that header would take about 0.4 us. */
export function withHeader(name: string, value: string): string {
  return `${CORS_JSON_TYPE}${HEADER_BREAK}${name}: ${value}`
}

export const NO_HEADERS: HeaderList = []

/** Some clients look for `"success": true` in the text, with Google's space. */
export function siteverifyJson(answer: object): string {
  return JSON.stringify(answer, null, 1).replace(/\n */g, ' ')
}

export function refusalBody({ reason, detail, field }: Refusal, style: ErrorStyle): object {
  const { code, message } = answerTo(reason, style)
  const error = detail ?? message
  if (style === 'siteverify') return { success: false, 'error-codes': [code], messages: [error] }
  const success = style === 'redemption' ? { success: false } : {}
  return { ...success, error, code, ...(field === undefined ? {} : { field }) }
}

/** Hosted CAPTCHAs answer every verdict with 200, and so does /siteverify. */
export function answerTo(reason: Reason, style: ErrorStyle) {
  const { status, code, message, siteverifyCode, siteverifyMessage, keepsStatus } = OUTCOMES[reason]
  if (style !== 'siteverify') return { status, code, message }
  const isVerdict = (status === 400 || status === 401) && keepsStatus === undefined
  return { status: isVerdict ? 200 : status, code: siteverifyCode, message: siteverifyMessage ?? message }
}

/** Limits in requests a minute, by their names in the RateLimit headers. */
export type PolicyList = Readonly<Record<string, number>>

export interface ReplyStyle {
  readonly errors: ErrorStyle
  /** The endpoint's limits, for the header RateLimit-Policy; undefined for a path without limits. */
  readonly policies: PolicyList | undefined
}

export const PLAIN_STYLE: ReplyStyle = { errors: 'plain', policies: undefined }

const RETRY_UNAVAILABLE_MS = 1000

export function refusalReply(
  { errors, policies }: ReplyStyle,
  refusal: Refusal,
  subject?: RefusalSubject,
  retryAfterMs = RETRY_UNAVAILABLE_MS,
): Reply {
  const { status } = answerTo(refusal.reason, errors)
  return {
    status,
    ending: { kind: 'refused', refusal, subject },
    body: (errors === 'siteverify' ? siteverifyJson : JSON.stringify)(refusalBody(refusal, errors)),
    headers: refusalHeaders(status, policies, refusal.policy, retryAfterMs),
  }
}

const UNAUTHORIZED_HEADERS: HeaderList = [['WWW-Authenticate', 'Bearer']]
const WINDOW_SECONDS = 60

/** @param policy the limit that refused; with 503 none did, and the first is named, for clients that wait by these headers */
function refusalHeaders(
  status: number,
  policies: PolicyList | undefined,
  policy: string | undefined,
  retryAfterMs: number,
): HeaderList {
  if (status === 401) return UNAUTHORIZED_HEADERS
  if (policies === undefined || (status !== 429 && status !== 503)) return NO_HEADERS
  // A lower number would make the client come too early.
  const seconds = Math.max(1, Math.ceil(retryAfterMs / 1000))
  const quotas = Object.entries(policies).map(([name, quota]) => `"${name}";q=${quota};w=${WINDOW_SECONDS}`)
  return [
    ['Retry-After', String(seconds)],
    ['RateLimit-Policy', quotas.join(', ')],
    ['RateLimit', `"${policy ?? 'address'}";r=0;t=${seconds}`],
  ]
}

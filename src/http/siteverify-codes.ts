/** Maps refusals to the `error-codes` of the large hosted CAPTCHAs, for POST /siteverify. */

import { OUTCOMES, type Reason } from '../domain/outcome.ts'

/**
 * The first seven are common to reCAPTCHA and Turnstile, the next two are hCaptcha's. The last two are powgate's own, for
 * cases that those services do not report or check.
 */
export const SITEVERIFY_CODES = [
  'missing-input-secret',
  'invalid-input-secret',
  'missing-input-response',
  'invalid-input-response',
  'timeout-or-duplicate',
  'bad-request',
  'internal-error',
  'sitekey-secret-mismatch',
  'invalid-remoteip',
  'remoteip-mismatch',
  'rate-limited',
] as const

export type SiteverifyCode = (typeof SITEVERIFY_CODES)[number]

const CODES: Partial<Readonly<Record<Reason, SiteverifyCode>>> = {
  'credentials-missing': 'missing-input-secret',
  'credentials-malformed': 'invalid-input-secret',
  'api-key-unknown': 'invalid-input-secret',
  'api-key-wrong-secret': 'invalid-input-secret',
  'api-key-revoked': 'invalid-input-secret',
  'api-key-expired': 'invalid-input-secret',
  'api-key-site-inactive': 'invalid-input-secret',
  'token-missing': 'missing-input-response',
  'token-malformed': 'invalid-input-response',
  'token-forged': 'invalid-input-response',
  'token-from-future': 'invalid-input-response',
  'token-forgotten': 'invalid-input-response',
  'test-key-fails': 'invalid-input-response',
  'token-expired': 'timeout-or-duplicate',
  'token-used': 'timeout-or-duplicate',
  'test-key-used': 'timeout-or-duplicate',
  'token-other-site': 'sitekey-secret-mismatch',
  'site-key-other-site': 'sitekey-secret-mismatch',
  'expected-ip-malformed': 'invalid-remoteip',
  'token-other-address': 'remoteip-mismatch',
  'rate-limited': 'rate-limited',
  'store-unavailable': 'internal-error',
  overloaded: 'internal-error',
  internal: 'internal-error',
}

/** Messages that replace those of the table of outcomes which name /verify-token's header and fields. */
const MESSAGES: Partial<Readonly<Record<Reason, string>>> = {
  'content-type':
    'The Content-Type header must be application/x-www-form-urlencoded, application/json or multipart/form-data.',
  'credentials-missing': 'secret is missing; an API key is expected.',
  'token-missing': 'response is missing; the token is expected.',
  'site-key-other-site': 'sitekey is not that of the secret.',
  'expected-ip-malformed': 'remoteip is not an IPv4 or IPv6 address.',
  'token-other-address': 'The token was issued to another IP address than remoteip.',
}

/** The code of a reason; `bad-request` if the table has none. */
export function siteverifyCode(reason: Reason): SiteverifyCode {
  return CODES[reason] ?? 'bad-request'
}

export function siteverifyMessage(reason: Reason): string {
  return MESSAGES[reason] ?? OUTCOMES[reason].message
}

/** The status of a refusal. The hosted services answer every verdict with 200; other refusals keep their status. */
export function siteverifyStatus(reason: Reason): number {
  const { status } = OUTCOMES[reason]
  const isVerdict =
    reason !== 'length-ambiguous' && reason !== 'sent-by-page' && (status === 400 || status === 401)
  return isVerdict ? 200 : status
}

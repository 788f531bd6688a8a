/** The JSON bodies of the three endpoints (contract §2). */

/** Response of GET /challenge. */
export interface Challenge {
  /** 32 lowercase hexadecimal characters. */
  nonce: string
  /** Leading zero bits required, 16 to 28. */
  difficulty: number
  algorithm: 'sha256'
  /** Unix time in milliseconds. */
  expiresAt: number
}

/** The seven headless-detection signals; each is optional. */
export interface Environment {
  webdriver?: boolean
  chromeAbsent?: boolean
  swiftShader?: boolean
  noPlugins?: boolean
  notificationDenied?: boolean
  zeroScreen?: boolean
  noLanguages?: boolean
}

/** Request body of POST /verify. */
export interface Solution {
  nonce: string
  counter: number
  solveTimeMs?: number
  /** SHA-256 of browser signals, 64 hexadecimal characters. */
  fingerprintHash: string
  environment?: Environment
  /** Extension: what the page gave the widget. Bound in the token, and returned by POST /siteverify. */
  action?: string | undefined
  cdata?: string | undefined
}

/** Response of POST /verify. */
export type VerificationResult =
  | { token: string; passed: true; expiresAt: number }
  | { token: null; passed: false; expiresAt: null }

/** Request body of POST /verify-token. */
export interface Redemption {
  token: string
  expectedIp?: string
  /** Extension: 1 to 64 characters; a retry with the same key gets the first answer again. */
  idempotencyKey?: string
}

/** Response of POST /verify-token. */
export type RedemptionResult =
  | { success: true; score: number; ip: string; solvedAt: number }
  | { success: false; error: string; code: string }

/**
 * The `error-codes` of the large hosted CAPTCHAs, for POST /siteverify. The first seven are common to reCAPTCHA and Turnstile,
 * the next two are hCaptcha's. The last three are powgate's own, for cases that those services do not report or check.
 */
export type SiteverifyCode =
  | 'missing-input-secret'
  | 'invalid-input-secret'
  | 'missing-input-response'
  | 'invalid-input-response'
  | 'timeout-or-duplicate'
  | 'bad-request'
  | 'internal-error'
  | 'sitekey-secret-mismatch'
  | 'invalid-remoteip'
  | 'remoteip-mismatch'
  | 'rate-limited'
  | 'score-too-low'

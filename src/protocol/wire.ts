/** JSON bodies of the endpoints (docs/reference/contract.md, §2), and the codes of POST /siteverify. */

import type { PuzzleName } from './proof.ts'

/** The answer of GET /challenge. */
export interface Challenge {
  /** 32 lowercase hexadecimal characters. */
  nonce: string
  /** Leading zero bits, 16 to 28. */
  difficulty: number
  algorithm: PuzzleName
  /** Unix milliseconds. */
  expiresAt: number
}

/** Signs of a headless browser. */
export interface Environment {
  webdriver?: boolean
  chromeAbsent?: boolean
  swiftShader?: boolean
  noPlugins?: boolean
  notificationDenied?: boolean
  zeroScreen?: boolean
  noLanguages?: boolean
}

/** The body of POST /verify. */
export interface Solution {
  nonce: string
  counter: number
  solveTimeMs?: number
  /** SHA-256 of browser signals, in hexadecimal. */
  fingerprintHash: string
  environment?: Environment
  /** `action` and `cdata` are not in the contract: the page sets them, the token holds them, and POST /siteverify returns them. */
  action?: string | undefined
  cdata?: string | undefined
}

/** The answer of POST /verify. */
export type VerificationResult =
  | { token: string; passed: true; expiresAt: number }
  | { token: null; passed: false; expiresAt: null }

/** The body of POST /verify-token. */
export interface Redemption {
  token: string
  expectedIp?: string
  /** It is not in the contract. 1 to 64 characters; a retry with the same key gets the first answer. */
  idempotencyKey?: string
}

/** The answer of POST /verify-token. */
export type RedemptionResult =
  | { success: true; score: number; ip: string; solvedAt: number }
  | { success: false; error: string; code: string }

/** `error-codes` of POST /siteverify; the last three are powgate's own. */
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

/** JSON bodies of the endpoints (docs/reference/contract.md, §2). All times of day are Unix milliseconds. */

import type { PuzzleName } from './proof.ts'

/** The answer of GET /challenge. */
export interface Challenge {
  /** 32 lowercase hexadecimal characters. */
  nonce: string
  /** Leading zero bits, 16 to 28. */
  difficulty: number
  algorithm: PuzzleName
  expiresAt: number
}

/** Signs of a headless browser. widget/signals.ts says when each is true. */
export const ENVIRONMENT_FLAGS = [
  'webdriver',
  'chromeAbsent',
  'swiftShader',
  'noPlugins',
  'notificationDenied',
  'zeroScreen',
  'noLanguages',
] as const

export type Environment = { [Flag in (typeof ENVIRONMENT_FLAGS)[number]]?: boolean }

/** The body of POST /verify. */
export interface Solution {
  nonce: string
  /** Solves the challenge: see proof.ts. */
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

/** The answer of POST /verify-token: the score is 0 (a bot) to 1 (a person), `ip` the address that solved the challenge. */
export type RedemptionResult =
  | { success: true; score: number; ip: string; solvedAt: number }
  | { success: false; error: string; code: string }

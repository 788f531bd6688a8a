/** Stands in for a service in unit tests, on powgate's published test keys. It opens no connection. */

import { type Answer, Powgate, type PowgateOptions } from './powgate.js'

/** powgate knows these keys too, if it runs with POWGATE_TEST_KEYS=on. They are published, and no secrets. */
export const TEST_API_KEYS = {
  /** Every token is good, with score 1. */
  passes: 'sk_TestPass_published-and-always-passes-000000000000000',
  /** Every token is refused with `invalid-token`. */
  fails: 'sk_TestFail_published-and-always-fails-0000000000000000',
  /** Every token is refused with `token-used`. */
  used: 'sk_TestUsed_published-and-always-already-used-000000000',
} as const

const refusal = (status: number, code: string, error: string) => ({
  status,
  body: { success: false, error, code },
})
const REFUSALS: Readonly<Record<string, ReturnType<typeof refusal>>> = {
  [TEST_API_KEYS.fails]: refusal(400, 'invalid-token', 'The token is not valid.'),
  [TEST_API_KEYS.used]: refusal(400, 'token-used', 'Token already used'),
}
const UNKNOWN_KEY = refusal(
  401,
  'invalid-credentials',
  'The API key is missing or not valid. Send the header Authorization: Bearer <API key>.',
)

/** Answers as the service does with the same key. Any other key gets an `AuthError`, so a real site never runs on it. */
export class FakePowgate extends Powgate {
  readonly #apiKey: string

  constructor({
    url = 'http://powgate.invalid',
    ...options
  }: Omit<PowgateOptions, 'url'> & { url?: string }) {
    super({ url, ...options })
    this.#apiKey = options.apiKey
  }

  protected override async exchange(request: string): Promise<Answer> {
    const ip = JSON.parse(request).expectedIp ?? '127.0.0.1'
    const pass = { status: 200, body: { success: true, score: 1, ip, solvedAt: Date.now() } }
    const isPass = this.#apiKey === TEST_API_KEYS.passes
    const { status, body } = isPass ? pass : (REFUSALS[this.#apiKey] ?? UNKNOWN_KEY)
    return { status, retryAfter: null, text: JSON.stringify(body) }
  }
}

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
    const { status, body } = this.#answer(JSON.parse(request).expectedIp ?? '127.0.0.1')
    return { status, retryAfter: null, text: JSON.stringify(body) }
  }

  #answer(ip: string): { status: number; body: object } {
    switch (this.#apiKey) {
      case TEST_API_KEYS.passes:
        return { status: 200, body: { success: true, score: 1, ip, solvedAt: Date.now() } }
      case TEST_API_KEYS.fails:
        return refusal(400, 'invalid-token', 'The token is not valid.')
      case TEST_API_KEYS.used:
        return refusal(400, 'token-used', 'Token already used')
      default:
        return refusal(
          401,
          'invalid-credentials',
          'The API key is missing or not valid. Send the header Authorization: Bearer <API key>.',
        )
    }
  }
}

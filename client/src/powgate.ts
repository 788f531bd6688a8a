/**
 * Asks a powgate service whether the token of a form is good: one call, `verify`.
 *
 * A refusal of the token is a value. What is no verdict (a wrong key, a limit, no answer) is thrown, so that no failure is
 * ever taken for a pass. Nothing here writes a log, and no error holds the API key or a token.
 */

export interface PowgateOptions {
  /** Address of the service, such as `http://powgate:8080`. It may have a path. */
  readonly url: string
  /** The site's secret API key, `sk_...`. */
  readonly apiKey: string
  /** The time limit of the whole call, retries included. 1 to 600,000; 2,000 if left out. */
  readonly timeoutMs?: number
  /** How often a call is repeated after a lost answer, 502, 503, 504 or 429. 0 to 10; 2 if left out. */
  readonly maxRetries?: number
  /** A lower score than this one is refused too, besides the site's own `min-score`. 0 to 1; 0 if left out. */
  readonly minScore?: number
}

export interface VerifyOptions {
  /** The visitor's address as this backend sees it. A token that was issued to another address is then refused. */
  readonly ip?: string
  /** Ends the call early: `verify` then throws the signal's reason. */
  readonly signal?: AbortSignal
}

export interface Accepted {
  readonly ok: true
  /** From `minScore` to 1. */
  readonly score: number
  /** The address to which the token was issued. */
  readonly ip: string
  /** Unix time in milliseconds. */
  readonly solvedAt: number
}

export type RefusalCode =
  /** The form brought none: the visitor sent it too early, or without scripts. */
  | 'token-missing'
  | 'token-used'
  | 'token-expired'
  | 'token-forgotten'
  | 'invalid-token'
  | 'ip-mismatch'
  | 'site-mismatch'
  /** The token was good, and is spent, but its score is below the site's `min-score`, or below `minScore`. */
  | 'score-too-low'
  /** The token is too long, or `ip` is no address. */
  | 'invalid-body'
  | (string & {})

export interface Refused {
  readonly ok: false
  readonly code: RefusalCode
  /** A text for your log, not for the visitor. */
  readonly message: string
}

export type Verdict = Accepted | Refused

/** There is no verdict. The four errors below extend it. */
export class PowgateError extends Error {
  override name = 'PowgateError'
  /** The same call may succeed after this time; undefined if it cannot. */
  readonly retryAfterMs: number | undefined

  constructor(message: string, retryAfterMs?: number) {
    super(message)
    this.retryAfterMs = retryAfterMs
  }
}

/** The service does not know the API key (401). */
export class AuthError extends PowgateError {
  override name = 'AuthError'
}

/** The service refuses more requests for now (429). */
export class RateLimitError extends PowgateError {
  override name = 'RateLimitError'
  declare readonly retryAfterMs: number
}

/** No answer, or one that is not the service's verdict (such as 503, or a proxy's page). */
export class UnavailableError extends PowgateError {
  override name = 'UnavailableError'
}

/** `timeoutMs` has passed. */
export class TimeoutError extends PowgateError {
  override name = 'TimeoutError'
}

/** An answer of `/verify-token`. */
export interface Answer {
  readonly status: number
  /** The header Retry-After. */
  readonly retryAfter: string | null
  readonly text: string
}

const FIRST_PAUSE_MS = 50

export class Powgate {
  readonly #endpoint: string
  readonly #apiKey: string
  readonly #timeoutMs: number
  readonly #maxRetries: number
  readonly #minScore: number

  /** @throws TypeError that names the option which is wrong or unknown */
  constructor(options: PowgateOptions) {
    const { url, apiKey, timeoutMs = 2000, maxRetries = 2, minScore = 0, ...others } = options
    refuseOthers(others)
    expect(isServiceUrl(url), 'url', 'http:// or https:// and a host, without user, password or query')
    // What is no key may still be a secret, so no message repeats it.
    expect(
      /^sk_[\w-]+$/.test(apiKey),
      'apiKey',
      'an API key, which begins with sk_ (site_ is the public site key)',
    )
    expect(isWithin(timeoutMs, 1, 600_000), 'timeoutMs', 'a number of milliseconds from 1 to 600000')
    expect(
      isWithin(maxRetries, 0, 10) && Number.isInteger(maxRetries),
      'maxRetries',
      'a whole number from 0 to 10',
    )
    expect(isWithin(minScore, 0, 1), 'minScore', 'a number from 0 to 1')
    this.#endpoint = `${url.replace(/\/+$/, '')}/verify-token`
    this.#apiKey = apiKey
    this.#timeoutMs = timeoutMs
    this.#maxRetries = maxRetries
    this.#minScore = minScore
  }

  /**
   * Redeems a token, which is possible once.
   *
   * @param token the form's field `powgate-token`; whatever is no text is refused with the code `token-missing`
   * @throws AuthError, RateLimitError, UnavailableError or TimeoutError if there is no verdict; the reason of `signal`
   *   if it was aborted; TypeError for an option that is wrong or unknown
   */
  async verify(token: unknown, options: VerifyOptions = {}): Promise<Verdict> {
    const { ip, signal, ...others } = options
    refuseOthers(others)
    // A header that is missing must not turn the check off.
    expect(!('ip' in options) || (typeof ip === 'string' && ip !== ''), 'ip', "the visitor's address")
    signal?.throwIfAborted()
    if (typeof token !== 'string' || token === '')
      return refused('token-missing', 'The form brought no token.')
    // The key makes every retry of this call the same redemption, and no other call.
    const body = JSON.stringify({ token, expectedIp: ip, idempotencyKey: await newKey() })
    const endAtMs = performance.now() + this.#timeoutMs
    for (let retriesLeft = this.#maxRetries, backoffMs = FIRST_PAUSE_MS; ; retriesLeft--, backoffMs *= 2) {
      const leftMs = endAtMs - performance.now()
      // An attempt waits for half of what is left, so that a silent connection leaves time for another.
      const result = await this.#attempt(body, retriesLeft > 0 ? leftMs / 2 : leftMs, signal)
      if (!(result instanceof PowgateError)) return result
      const pauseMs = Math.max(result.retryAfterMs ?? Number.POSITIVE_INFINITY, backoffMs)
      if (retriesLeft === 0 || performance.now() + pauseMs >= endAtMs) throw result
      await sleep(pauseMs, signal)
    }
  }

  async #attempt(body: string, waitMs: number, signal?: AbortSignal): Promise<Verdict | PowgateError> {
    signal?.throwIfAborted() // A signal that is aborted already calls no listener.
    const controller = new AbortController()
    const stop = () => controller.abort()
    let isLate = false
    const timer = setTimeout(() => {
      isLate = true
      stop()
    }, waitMs)
    signal?.addEventListener('abort', stop)
    try {
      return this.#read(await this.exchange(body, controller.signal))
    } catch (error) {
      signal?.throwIfAborted()
      if (isLate) return new TimeoutError(`no answer within ${this.#timeoutMs} ms`, 0)
      return new UnavailableError(`no answer: ${causeOf(error)}`, 0)
    } finally {
      clearTimeout(timer)
      signal?.removeEventListener('abort', stop)
    }
  }

  /** Sends one request. (`powgate-client/testing` answers instead.) */
  protected async exchange(body: string, signal: AbortSignal): Promise<Answer> {
    const response = await fetch(this.#endpoint, {
      method: 'POST',
      headers: { Authorization: `Bearer ${this.#apiKey}`, 'Content-Type': 'application/json' },
      body,
      redirect: 'manual', // the API key goes to no other address
      signal,
    })
    const { status, headers } = response
    return { status, retryAfter: headers.get('retry-after'), text: await response.text() }
  }

  #read({ status, retryAfter, text }: Answer): Verdict | PowgateError {
    const { success, score, ip, solvedAt, code, error } = parseObject(text)
    const isSuccess = status === 200 && success === true
    if (isSuccess && typeof score === 'number' && typeof ip === 'string' && typeof solvedAt === 'number') {
      if (score >= this.#minScore) return { ok: true, score, ip, solvedAt }
      return refused('score-too-low', `The score ${score} is below ${this.#minScore}.`)
    }
    if ((status === 400 || status === 413) && success === false && typeof code === 'string')
      return refused(code, String(error))
    if (status === 401)
      return new AuthError(`the service does not know the API key (${code ?? 'status 401'})`)
    const pauseMs = milliseconds(retryAfter)
    if (status === 429) return new RateLimitError('the service admits no more requests now', pauseMs ?? 1000)
    const isTransient = status >= 502 && status <= 504
    return new UnavailableError(
      `status ${status} without a verdict`,
      isTransient ? (pauseMs ?? 0) : undefined,
    )
  }
}

function refused(code: RefusalCode, message: string): Refused {
  return { ok: false, code, message }
}

function expect(isRight: boolean, option: string, what: string): asserts isRight {
  if (!isRight) throw new TypeError(`powgate-client: ${option} is wrong; expected ${what}`)
}

/** A mistyped name would leave its option at the default. */
function refuseOthers(others: object): void {
  for (const name of Object.keys(others)) throw new TypeError(`powgate-client: there is no option ${name}`)
}

function isWithin(value: unknown, min: number, max: number): boolean {
  return typeof value === 'number' && value >= min && value <= max
}

function isServiceUrl(text: unknown): text is string {
  try {
    const { protocol, username, password, search, hash } = new URL(text as string)
    return /^https?:$/.test(protocol) && username + password + search + hash === ''
  } catch {
    return false
  }
}

/** Node.js 18 has no global `crypto`. Bundlers for other runtimes leave an import alone that a variable names. */
const NODE_CRYPTO = 'node:crypto'
async function newKey(): Promise<string> {
  return (globalThis.crypto ?? (await import(NODE_CRYPTO)).webcrypto).randomUUID()
}

/** The wait that a Retry-After header asks for: in seconds, or as a date, which some proxies send. */
function milliseconds(header: string | null): number | undefined {
  if (header === null) return undefined
  const ms = /^\d+$/.test(header) ? Number(header) * 1000 : Date.parse(header) - Date.now()
  return Number.isNaN(ms) ? undefined : Math.max(0, ms)
}

/** Rejects with the signal's reason as soon as it is aborted. */
function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer)
      reject(signal!.reason)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', stop)
      resolve()
    }, ms)
    signal?.addEventListener('abort', stop)
  })
}

/** A word for what went wrong. The error itself may hold the request, and with it the API key. */
function causeOf(error: unknown): string {
  const { code, cause } = error as { code?: unknown; cause?: { code?: unknown } }
  return String(cause?.code ?? code ?? 'the connection failed')
}

function parseObject(text: string): Record<string, unknown> {
  try {
    return Object(JSON.parse(text))
  } catch {
    return {}
  }
}

/** The two calls that a browser makes, with retries and the waits that the service asks for. */

import type { Challenge, Solution, VerificationResult } from '../protocol/wire.ts'
import { listen, sleep, timeoutSignal } from './dom.ts'
import type { Signals } from './solver/job.ts'

const TRIES_MAX = 5
const TIMEOUT_MS = 15_000 // of one try
const BACK_OFF_MS = 1000 // the wait before the second try, doubled before each further one
/** A random time up to this spreads the retries of a site's visitors. */
const JITTER_MS = 500
const ONLINE_ANYWAY_MS = 30_000 // A device that says it is offline tries all the same after this time.
/** A longer wait counts as a failure, and the visitor is told the time. */
const WAIT_MS_MAX = 900_000

/** An error of a verification. Its code does not change between versions: the service's own, or one of the widget's. */
export class PowGateError extends Error {
  override readonly name = 'PowGateError'
  readonly code: string
  /** The key of the text that visitors read (texts.ts). */
  readonly text: FailureText
  readonly status: number | undefined
  /** Seconds until another try, if the service asked for more than WAIT_MS_MAX. */
  seconds: number | undefined

  constructor(code: string, text: FailureText, message: string, status?: number) {
    super(message)
    this.code = code
    this.text = text
    this.status = status
  }
}

type FailureText = 'rejected' | 'expired' | 'network' | 'unavailable' | 'setup'

export type WaitReason = 'busy' | 'unavailable' | 'network' | 'offline'

export interface CallSettings {
  readonly siteKey: string
  /** The address has no slash at its end. */
  readonly endpoint: string
  /** Gives the verification up. */
  readonly signal: AbortSignal
  /** Called before each wait, and without a reason when nothing is waited for. Offline, the length is unknown. */
  readonly onWait: (reason: WaitReason | undefined, ms: number) => void
}

/**
 * True if JSON has come since the device went offline, if it did: some browsers are wrong, as with a VPN. A page for the lost
 * network, from a service worker, does not count.
 */
let isOnlineAnyway = false
addEventListener('offline', () => (isOnlineAnyway = false))
export const isOffline = () => !navigator.onLine && !isOnlineAnyway

let challenges = 0
/**
 * Each challenge has its own address, because a cache that keeps everything would give out a used one. A page's first has
 * none of its own, because browsers remember an address' preflight from page to page.
 */
const challengePath = () => (challenges++ === 0 ? '/challenge' : `/challenge?${Math.random()}`)

export const getChallenge = (settings: CallSettings) =>
  withRetries(settings, () => callOnce(settings, challengePath(), {}, isChallenge))

export const postSolution = (settings: CallSettings, solution: Solution) =>
  withRetries(settings, () =>
    callOnce(settings, '/verify', { method: 'POST', body: JSON.stringify(solution) }, isResult),
  )

const isChallenge = ({ nonce }: Challenge) => typeof nonce === 'string'

/** False for the answer of another service: a token starts with its issue time, which is before `expiresAt`. */
function isResult({ passed, token, expiresAt }: VerificationResult): boolean {
  return passed === false || (passed === true && expiresAt > Number.parseInt(token, 10))
}

/** An error with a `reason` is worth another try. */
type Attempt<Answer> =
  | { readonly answer: Answer }
  | { readonly error: PowGateError; readonly retryAfterMs?: number; readonly reason?: WaitReason }

/** Repeats a call, or the opening of the solver, up to TRIES_MAX times, with growing waits. */
export async function withRetries<Answer>(
  settings: CallSettings,
  tryOnce: () => Promise<Attempt<Answer>>,
): Promise<Answer> {
  for (let tries = 0; ; ) {
    throwIfAborted(settings.signal)
    const attempt = await tryOnce()
    if ('answer' in attempt) {
      settings.onWait(undefined, 0)
      return attempt.answer
    }
    throwIfAborted(settings.signal) // an abort within a call is an `error` of the attempt
    const { error, reason, retryAfterMs = 0 } = attempt
    if (retryAfterMs > WAIT_MS_MAX) error.seconds = Math.ceil(retryAfterMs / 1000)
    if (reason === undefined || error.seconds) throw error
    // A device that is offline uses up no try: it may lose its network often in one visit, and the service is not the cause.
    if (isOffline()) {
      await waitUntilOnline(settings)
      continue
    }
    if (++tries === TRIES_MAX) throw error
    const waitMs = Math.max(retryAfterMs, BACK_OFF_MS * 2 ** (tries - 1)) + Math.random() * JITTER_MS
    settings.onWait(reason, waitMs)
    await untilAborted(sleep(waitMs), settings.signal)
  }
}

async function callOnce<Answer>(
  { endpoint, siteKey, signal }: CallSettings,
  path: string,
  init: RequestInit,
  isAnswer: (body: Answer) => boolean,
): Promise<Attempt<Answer & { readonly signals: Signals }>> {
  try {
    const headers = { 'X-Site-Key': siteKey, ...(init.body ? { 'Content-Type': 'application/json' } : {}) }
    const asking = fetch(endpoint + path, {
      ...init,
      headers,
      credentials: 'omit',
      cache: 'no-store',
      referrerPolicy: 'no-referrer',
      signal: timeoutSignal(TIMEOUT_MS),
    })
    const response = await untilAborted(asking, signal)
    const body = await response.json().catch(() => undefined)
    const { status } = response
    const isForeign = body === undefined // the page of a proxy, or of a network that wants a login
    isOnlineAnyway ||= !isForeign
    // A proxy's 429 or 5xx counts as the service's own refusal. Any other foreign page means a network without the service (below).
    if (!response.ok && (!isForeign || status === 429 || status >= 500)) return refusalOf(response, body)
    // What the site lets the widget read of the browser. Early versions of the service do not send this header.
    const signals = response.headers.get('X-Powgate-Signals') === 'none' ? 'none' : 'flags'
    if (body && isAnswer(body)) return { answer: { ...body, signals } }
    const text = isForeign ? 'network' : 'setup'
    const error = new PowGateError('unexpected-answer', text, 'the answer is not whole, or foreign', status)
    return isForeign ? { error, reason: 'network' } : { error }
  } catch (error) {
    return { error: new PowGateError('network', 'network', `${endpoint}: ${error}`), reason: 'network' }
  }
}

function refusalOf(
  { status, headers }: Response,
  body: { error?: unknown; code?: unknown } | undefined,
): Attempt<never> {
  const code = String(body?.code ?? `status-${status}`)
  const message = String(body?.error ?? `status ${status}`)
  if (status !== 429 && status < 500) return { error: new PowGateError(code, 'setup', message, status) }
  const error = new PowGateError(code, 'unavailable', message, status)
  // A date, which a proxy may send, counts for nothing: the visitor's clock may be hours off.
  const retryAfterMs = Number.parseInt(headers.get('Retry-After')!, 10) * 1000 || 0
  return { error, retryAfterMs, reason: status === 429 ? 'busy' : 'unavailable' }
}

async function waitUntilOnline({ onWait, signal }: CallSettings): Promise<void> {
  let stopListening = () => {}
  const online = new Promise(resolve => (stopListening = listen(window, 'online', resolve)))
  onWait('offline', 0)
  // A browser may take a device for offline that is not.
  const waiting = Promise.race([online, sleep(ONLINE_ANYWAY_MS)])
  await untilAborted(waiting, signal).finally(stopListening)
  onWait(undefined, 0)
}

/** Visitors never see this text, because an element shows nothing of a verification that it has aborted. */
const cancelled = () => new PowGateError('cancelled', 'rejected', 'the verification was cancelled')

export function throwIfAborted(signal: AbortSignal): void {
  if (signal.aborted) throw cancelled()
}

/** Rejects as soon as the signal aborts, because work that was given up may never settle: a closed worker says nothing more. */
export function untilAborted<Value>(work: Promise<Value>, signal: AbortSignal): Promise<Value> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) reject(cancelled())
    signal.addEventListener('abort', () => reject(cancelled()))
    work.then(resolve, reject)
  })
}

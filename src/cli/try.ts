/**
 * `powgate try`: sends one visitor through a running service, from the challenge to the redeemed token. Also an example for
 * integrators.
 *
 *   browser                  GET /challenge -> solve -> POST /verify -> token
 *   backend of the site      token -> POST /verify-token -> score
 */

import { createHash } from 'node:crypto'
import { hostname } from 'node:os'
import { isOriginPattern } from '../domain/origin.ts'
import { PLAIN_ENVIRONMENT } from '../domain/score.ts'
import { apiKeyId } from '../domain/site.ts'
import { DIFFICULTY_MAX, DIFFICULTY_MIN, isNonceText } from '../protocol/proof.ts'
import type { Challenge, RedemptionResult, Solution, VerificationResult } from '../protocol/wire.ts'
import { SITE_KEY_RULE } from '../sites/rules.ts'
import { AdminError } from '../sites/sites.ts'
import type { CommandEntry, Flag, Input } from './command.ts'
import { printJson, printLine } from './output.ts'
import { effortText, type Solved, solve } from './solve.ts'

export const DEFAULT_URL = 'http://127.0.0.1:8080'

export const URL_FLAG: Flag = {
  about: `Address of the service. Default: ${DEFAULT_URL}.`,
  value: {
    placeholder: 'URL',
    variable: 'POWGATE_URL',
    expects: 'http:// or https:// and a host, without user, password or query',
    accepts: isServiceUrl,
    isSecret: true, // it may hold a password
  },
}

export const SITE_KEY_FLAG: Flag = {
  about: 'Public key of the site.',
  value: { placeholder: 'KEY', variable: 'POWGATE_SITE_KEY', ...SITE_KEY_RULE },
}

function isServiceUrl(text: string): boolean {
  if (!URL.canParse(text)) return false
  const { protocol, username, password, search, hash } = new URL(text)
  return (protocol === 'http:' || protocol === 'https:') && username + password + search + hash === ''
}

export const TRY_COMMAND: CommandEntry = {
  name: 'try',
  about: 'Run the whole flow against a running service: challenge, solving, verification, redemption.',
  flags: {
    'site-key': { ...SITE_KEY_FLAG, isRequired: true },
    'api-key': {
      about: 'Secret API key of the site.',
      isRequired: true,
      value: {
        placeholder: 'KEY',
        variable: 'POWGATE_API_KEY',
        expects: 'sk_, 8 letters or digits, _ and 43 characters',
        accepts: text => apiKeyId(text) !== undefined,
        isSecret: true,
      },
    },
    url: URL_FLAG,
    origin: {
      about: 'Origin header to send, for a site that requires one. Default: none.',
      value: {
        placeholder: 'ORIGIN',
        expects: 'an origin such as https://example.com',
        accepts: text => isOriginPattern(text) && !text.includes('*'),
      },
    },
  },
  example: '--site-key site_0123456789ABCDEFabcdef --api-key sk_k3yId0Xy_<43 characters>',
  run: runTry,
}

async function runTry(input: Input): Promise<void> {
  const url = input.text('url') ?? DEFAULT_URL
  const isJson = input.has('json')
  const origin = input.text('origin')
  const browserHeaders = {
    'X-Site-Key': input.required('site-key'),
    ...(origin === undefined ? {} : { Origin: origin }),
  }

  // In the browser.
  const challenge = await callService<Challenge>(url, {
    method: 'GET',
    path: '/challenge',
    headers: browserHeaders,
  })
  if (!isJson) printStep('GET /challenge', challenge)

  const solved = solve(checkedChallenge(challenge.answer))
  if (!isJson) printSolved(solved)

  const solution: Solution = {
    nonce: challenge.answer.nonce,
    counter: solved.counter,
    solveTimeMs: Math.round(solved.ms),
    fingerprintHash: fingerprint(),
    environment: PLAIN_ENVIRONMENT, // a terminal is no browser, but has nothing to hide either
  }
  const verification = await callService<VerificationResult>(url, {
    method: 'POST',
    path: '/verify',
    headers: browserHeaders,
    body: solution,
  })
  if (!isJson) printStep('POST /verify', verification)
  if (!verification.answer.passed) {
    throw new AdminError('POST /verify did not pass: the score is below the threshold, or IP rules apply')
  }

  // In the site's backend, which got the token with the visitor's form. A real one adds `expectedIp`, the visitor's
  // address as the backend sees it.
  const redemption = await callService<RedemptionResult>(url, {
    method: 'POST',
    path: '/verify-token',
    headers: { Authorization: `Bearer ${input.required('api-key')}` },
    body: { token: verification.answer.token },
  })
  if (!isJson) printStep('POST /verify-token', redemption)
  if (!redemption.answer.success) throw new AdminError('POST /verify-token did not redeem the token')

  if (isJson) printJson({ url, challenge, solved, verification, redemption })
}

/** Checks the answer: another service at this address could demand endless work. */
function checkedChallenge(challenge: Challenge): Challenge {
  const { nonce, difficulty, algorithm } = challenge
  const isOurs =
    typeof nonce === 'string' &&
    isNonceText(nonce) &&
    Number.isInteger(difficulty) &&
    difficulty >= DIFFICULTY_MIN &&
    difficulty <= DIFFICULTY_MAX &&
    algorithm === 'sha256'
  if (!isOurs) throw new AdminError('GET /challenge answered 200 with something that is no challenge')
  return challenge
}

/** The same value for every trial on this machine, as for a returning visitor. */
function fingerprint(): string {
  return createHash('sha256').update(`powgate try on ${hostname()}`).digest('hex')
}

function printStep(call: string, { answer, ms }: Timed<unknown>): void {
  printLine(`${call.padEnd(18)}  ${millisecondsText(ms)}  ${JSON.stringify(answer)}`)
}

function printSolved(solved: Solved): void {
  const { counter, ms } = solved
  printLine(`${'solved'.padEnd(18)}  ${millisecondsText(ms)}  counter ${counter}: ${effortText(solved)}`)
}

function millisecondsText(ms: number): string {
  return `${ms.toFixed(1).padStart(8)} ms`
}

interface Call {
  readonly method: 'GET' | 'POST'
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  /** Sent as JSON. */
  readonly body?: unknown
}

interface Timed<Answer> {
  readonly answer: Answer
  readonly ms: number
}

const ANSWER_MS_MAX = 10_000
const ERROR_CHARACTERS_MAX = 300

/**
 * @param url of the service; it may have a path of its own
 * @throws AdminError saying in one line what the service refused, or that it cannot be reached
 */
async function callService<Answer>(url: string, call: Call): Promise<Timed<Answer>> {
  const { method, path, headers, body } = call
  const start = performance.now()
  const { response, text } = await exchange(url.replace(/\/+$/, '') + path, {
    method,
    headers: body === undefined ? headers : { ...headers, 'Content-Type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    redirect: 'manual', // a redirected POST would lose its body, and credentials go nowhere else
    signal: AbortSignal.timeout(ANSWER_MS_MAX),
  })
  const ms = performance.now() - start
  const answer = parseObject(text)
  if (response.status !== 200) {
    throw new AdminError(`${method} ${path} answered ${response.status}${explanation(response, answer)}`)
  }
  if (answer === undefined) throw new AdminError(`${method} ${path} answered 200 without a JSON object`)
  return { answer: answer as Answer, ms }
}

async function exchange(url: string, init: RequestInit): Promise<{ response: Response; text: string }> {
  try {
    const response = await fetch(url, init)
    return { response, text: await response.text() }
  } catch (error) {
    throw new AdminError(`cannot reach the service at ${url}: ${causeOf(error as Error)}`)
  }
}

/** The innermost error. `fetch` wraps errors once, and a host with several addresses wraps them again. */
function causeOf(error: Error): string {
  const { cause } = error as { cause?: Error & { code?: string; errors?: Error[] } }
  return cause?.errors?.[0]?.message || cause?.message || cause?.code || error.message
}

function explanation(response: Response, answer: Record<string, unknown> | undefined): string {
  const retryAfter = response.headers.get('retry-after')
  return [
    typeof answer?.code === 'string' ? ` ${answer.code}` : '',
    typeof answer?.error === 'string' ? `: ${answer.error}` : '',
    retryAfter === null ? '' : ` Retry after ${retryAfter} s.`,
  ]
    .join('')
    .replace(/\p{Cc}+/gu, ' ') // it comes from outside and goes to a terminal
    .slice(0, ERROR_CHARACTERS_MAX)
}

function parseObject(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined
  } catch {
    return undefined
  }
}

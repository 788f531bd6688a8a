/** `powgate try` sends one visitor through a running service. Integrators may read `runTry` as an example. */

import { createHash } from 'node:crypto'
import { hostname } from 'node:os'
import { isLoopback } from '../addresses/address.ts'
import { isOriginPattern } from '../domain/origin.ts'
import { PLAIN_ENVIRONMENT } from '../domain/score.ts'
import { apiKeyId } from '../domain/site.ts'
import { oneOf } from '../domain/value-forms.ts'
import { DIFFICULTY_MAX, DIFFICULTY_MIN, isNonceText, PUZZLES } from '../protocol/proof.ts'
import type { Challenge, Solution, VerificationResult } from '../protocol/wire.ts'
import { SITE_KEY_RULE } from '../sites/rules.ts'
import { type FirstKeys, firstKeysPath, readFirstKeys, serviceUrl } from '../sites/service-files.ts'
import { OperatorError, UsageError } from '../words/errors.ts'
import type { CommandEntry, Flag, Input } from './command.ts'
import { printJson, printLine, printTable } from './output.ts'
import { causeOf, commandSettings } from './site-store.ts'
import { effortText, solve } from './solve.ts'

const ANSWER_MS_MAX = 10_000
const ERROR_CHARACTERS_MAX = 300

export const URL_FLAG: Flag = {
  about: 'Address of the service. Default: where the service of this data directory listens.',
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

interface Vendor {
  readonly scriptPath: string
  readonly siteverifyPath: string
  /** Fields that the page sets, and that siteverify returns. */
  readonly pageFields: readonly string[]
  /** The `error-codes` of a success; undefined if the vendor's answer has none. */
  readonly errorCodes?: readonly string[]
}

const VENDORS: Readonly<Record<string, Vendor>> = {
  turnstile: {
    scriptPath: '/turnstile/v0/api.js',
    siteverifyPath: '/turnstile/v0/siteverify',
    pageFields: ['action', 'cdata'],
    errorCodes: [],
  },
  hcaptcha: { scriptPath: '/1/api.js', siteverifyPath: '/siteverify', pageFields: [] },
  recaptcha: {
    scriptPath: '/recaptcha/api.js',
    siteverifyPath: '/recaptcha/api/siteverify',
    pageFields: ['action'],
  },
}

export const TRY_COMMAND: CommandEntry = {
  name: 'try',
  about: 'Send one visitor through a running service: challenge, solving, verification, redemption.',
  flags: {
    'site-key': { ...SITE_KEY_FLAG, about: 'Public key of the site. Default: that of the first start.' },
    'api-key': {
      about:
        'Secret API key of the site; better in the variable, since every user sees a command line. Default: that of the first start.',
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
    as: {
      about: "Call as this vendor's clients do, and compare the answer with what the vendor documents.",
      value: oneOf('VENDOR', ...Object.keys(VENDORS)).text,
    },
  },
  example: '--site-key site_0123456789ABCDEFabcdef',
  run: runTry,
}

type Call = `GET ${string}` | `POST ${string}`
type Headers = Readonly<Record<string, string>>
type Fields = Readonly<Record<string, unknown>>

async function runTry(input: Input): Promise<void> {
  const url = input.text('url') ?? serviceUrl(commandSettings())
  const isJson = input.has('json')
  const origin = input.text('origin')
  const { siteKey, apiKey } = keysOf(input)
  const browserHeaders = { 'X-Site-Key': siteKey, ...(origin === undefined ? {} : { Origin: origin }) }
  const printStep = (step: string, ms: number, text: string) => {
    if (!isJson) printLine(`${step.padEnd(18)}  ${ms.toFixed(1).padStart(8)} ms  ${text}`)
  }
  const ask = async <Answer>(call: Call, headers: Headers, body?: object) => {
    const timed = await callService<Answer>(url, call, headers, body)
    printStep(call, timed.ms, JSON.stringify(timed.answer))
    return timed
  }

  const vendor = VENDORS[input.text('as') ?? '']
  const pageFields = Object.fromEntries(vendor?.pageFields.map(field => [field, `try_${field}`]) ?? [])

  // This part runs in the browser.
  const challenge = await ask<Challenge>('GET /challenge', browserHeaders)
  const solved = solve(checkedChallenge(challenge.answer))
  printStep('solved', solved.ms, `counter ${solved.counter}: ${effortText(solved)}`)
  const solution: Solution = {
    nonce: challenge.answer.nonce,
    counter: solved.counter,
    solveTimeMs: Math.round(solved.ms),
    fingerprintHash: createHash('sha256').update(`powgate try on ${hostname()}`).digest('hex'),
    ...pageFields,
    environment: PLAIN_ENVIRONMENT, // without any, the score is lower
  }
  const verification = await ask<VerificationResult>('POST /verify', browserHeaders, solution)
  const { token } = verification.answer
  if (token === null) {
    if (isJson) printJson({ url, challenge, solved, verification })
    throw new OperatorError('POST /verify did not pass: the score is below the threshold, or IP rules apply')
  }

  // This part runs in the site's backend, which gets the token with the form.
  const script = vendor && (await fetchText(url, vendor.scriptPath)).response
  if (vendor !== undefined && script?.status !== 200)
    throw new OperatorError(`GET ${vendor.scriptPath} answered ${script?.status}`)
  const form = new URLSearchParams({ secret: apiKey, response: token })
  const redemption =
    vendor === undefined
      ? await ask<Fields>('POST /verify-token', { Authorization: `Bearer ${apiKey}` }, { token }) // a real one adds `expectedIp`
      : await ask<Fields>(`POST ${vendor.siteverifyPath}`, {}, form)
  if (isJson) printJson({ url, challenge, solved, verification, redemption }) // before an error, so that its cause is seen
  if (vendor !== undefined) {
    const hostnameField = origin === undefined ? {} : { hostname: new URL(origin).hostname }
    // A value of undefined means that the answer must lack the field.
    const documented = { success: true, 'error-codes': vendor.errorCodes, ...hostnameField, ...pageFields }
    compare(redemption.answer, documented, isJson)
  } else if (redemption.answer.success !== true)
    throw new OperatorError('POST /verify-token did not redeem the token')
}

/** Returns the keys of the flags; without --api-key, those of the first start, but only for this machine's service: one is secret. */
function keysOf(input: Input): FirstKeys {
  const [siteKey, apiKey] = [input.text('site-key'), input.text('api-key')]
  if (siteKey !== undefined && apiKey !== undefined) return { siteKey, apiKey }
  const config = commandSettings()
  const first = readFirstKeys(config.dataDir)
  const mayBeFirst = apiKey === undefined && (siteKey === undefined || siteKey === first?.siteKey)
  if (first !== undefined && mayBeFirst && isOwnService(input.text('url'), serviceUrl(config))) return first
  throw new UsageError(
    `--site-key or POWGATE_SITE_KEY, --api-key or POWGATE_API_KEY: expected both, or neither with the keys of a first start in ${firstKeysPath(config.dataDir)}, for this machine's service alone`,
  )
}

const portOf = ({ port, protocol }: URL) => Number(port || (protocol === 'https:' ? 443 : 80))

function isOwnService(urlGiven: string | undefined, ownUrl: string): boolean {
  const url = new URL(urlGiven ?? ownUrl)
  const own = new URL(ownUrl)
  const ownPort = portOf(own)
  const isOwnPort = ownPort === 0 || ownPort === portOf(url) // PORT 0 takes a free port, which the settings do not tell
  return isOwnPort && (url.hostname === own.hostname || isLoopback(url.hostname.replace(/[[\]]/g, '')))
}

/** Prints each field beside its documented value; an undocumented field may have any. @throws OperatorError if one differs */
function compare(answer: Fields, documented: Fields, isSilent: boolean): void {
  const json = (value: unknown) => JSON.stringify(value) ?? '-'
  const rows = Object.keys({ ...documented, ...answer }).map(
    field => [field, json(answer[field]), field in documented ? json(documented[field]) : 'any'] as const,
  )
  if (!isSilent) printTable(['field', 'answered', 'documented'], rows)
  const wrong = rows.filter(([, answered, wanted]) => wanted !== 'any' && answered !== wanted)
  if (wrong.length > 0)
    throw new OperatorError(`not as documented: ${wrong.map(([name]) => name).join(', ')}`)
}

/** Checks the answer, because a service that is not powgate could demand endless work. */
function checkedChallenge(challenge: Challenge): Challenge {
  const { nonce, difficulty, algorithm } = challenge
  const isInRange = difficulty >= DIFFICULTY_MIN && difficulty <= DIFFICULTY_MAX
  const isPuzzle = typeof nonce === 'string' && isNonceText(nonce) && Number.isInteger(difficulty)
  if (!isPuzzle || !isInRange || !PUZZLES.includes(algorithm))
    throw new OperatorError('GET /challenge answered 200 with something that is no challenge')
  return challenge
}

/** @param body sent as JSON, unless it is a form. @throws OperatorError if no JSON object comes with status 200 */
async function callService<Answer>(
  url: string,
  call: Call,
  headers: Headers,
  body?: object,
): Promise<{ answer: Answer; ms: number }> {
  const [method, path] = call.split(' ') as [string, string]
  const isForm = body instanceof URLSearchParams // `fetch` sets its type
  const start = performance.now()
  const { response, text } = await fetchText(url, path, {
    method,
    headers: body === undefined || isForm ? headers : { ...headers, 'Content-Type': 'application/json' },
    ...(body === undefined ? {} : { body: isForm ? body : JSON.stringify(body) }),
  })
  const ms = performance.now() - start
  const answer = parseObject(text)
  if (response.status !== 200)
    throw new OperatorError(`${call} answered ${response.status}${explanation(response, answer)}`)
  if (answer === undefined) throw new OperatorError(`${call} answered 200 without a JSON object`)
  return { answer: answer as Answer, ms }
}

/** @throws OperatorError if no whole answer comes in time */
async function fetchText(url: string, path: string, init: RequestInit = {}) {
  const target = url.replace(/\/+$/, '') + path
  try {
    const signal = AbortSignal.timeout(ANSWER_MS_MAX)
    // A redirected POST would lose its body, and credentials go nowhere else.
    const response = await fetch(target, { ...init, redirect: 'manual', signal })
    return { response, text: await response.text() }
  } catch (error) {
    throw new OperatorError(`cannot reach the service at ${target}: ${causeOf(error as Error)}`)
  }
}

function explanation(response: Response, answer: Fields | undefined): string {
  const retryAfter = response.headers.get('retry-after')
  // uWebSockets.js refuses HTTP/1.0 before powgate sees the request.
  if (response.status === 505)
    return ': what stands before powgate speaks HTTP/1.0 to it, which powgate does not (nginx: proxy_http_version 1.1)'
  // Answers to /siteverify have lists of one in their place.
  const [code] = [answer?.code ?? answer?.['error-codes']].flat()
  const [error] = [answer?.error ?? answer?.messages].flat()
  const parts = [
    typeof code === 'string' ? ` ${code}` : ', and not by powgate: look at what stands before it',
    typeof error === 'string' ? `: ${error}` : '',
    retryAfter === null ? '' : ` Retry after ${retryAfter} s.`,
  ]
  const text = parts.join('').replace(/\p{Cc}+/gu, ' ') // it comes from outside: a line of it must not seem to be ours
  return text.slice(0, ERROR_CHARACTERS_MAX)
}

function parseObject(text: string): Fields | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? (value as Fields) : undefined
  } catch {
    return undefined
  }
}

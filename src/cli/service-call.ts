/** One HTTP call to a running service. */

import { SITE_KEY_RULE } from '../sites/rules.ts'
import { AdminError } from '../sites/sites.ts'
import type { Flag } from './command.ts'

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

export interface Call {
  readonly method: 'GET' | 'POST'
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  /** Sent as JSON. */
  readonly body?: unknown
}

export interface Timed<Answer> {
  readonly answer: Answer
  readonly ms: number
}

const ANSWER_MS_MAX = 10_000
const ERROR_CHARACTERS_MAX = 300

/**
 * @param url of the service; it may have a path of its own
 * @throws AdminError saying in one line what the service refused, or that it cannot be reached
 */
export async function callService<Answer>(url: string, call: Call): Promise<Timed<Answer>> {
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

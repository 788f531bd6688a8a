/** A client of the endpoints, with a solver. */

import { createHash } from 'node:crypto'
import { COUNTER_MAX, FIRST_COUNTER } from '../../src/protocol/proof.ts'
import type { Solution } from '../../src/protocol/wire.ts'
import { buildKernel } from '../../src/widget/kernel/kernel.ts'
import { wasmSolver } from '../../src/widget/solver/solvers.ts'
import { noteSecret } from './canaries.ts'
import { type Answer, call } from './http.ts'

export const FINGERPRINT = createHash('sha256').update('a browser').digest('hex')

/** The flags of contract §2.2, none of them set. Not the code's own list, so that a flag that is lost there fails a test. */
export const HONEST_ENVIRONMENT = {
  webdriver: false,
  chromeAbsent: false,
  swiftShader: false,
  noPlugins: false,
  notificationDenied: false,
  zeroScreen: false,
  noLanguages: false,
}
export const FLAGS = Object.keys(HONEST_ENVIRONMENT) as readonly (keyof typeof HONEST_ENVIRONMENT)[]

const solver = wasmSolver(buildKernel('simd'))

/** Finds a counter with the widget's solver, which takes a tenth of the time of hashing with node:crypto. */
export function solve(nonce: string, difficulty: number, start = FIRST_COUNTER): number {
  const counter = solver(nonce, difficulty)(start, COUNTER_MAX - start)
  if (counter < 0) throw new Error(`no counter at ${difficulty} bits`)
  return counter
}

export interface From {
  readonly from?: string
  readonly headers?: Record<string, string | string[]>
}

export class Client {
  readonly #url: string

  constructor(url: string) {
    this.#url = url
  }

  challenge(siteKey: string, { from, headers = {} }: From = {}): Promise<Answer> {
    return call(`${this.#url}/challenge`, { headers: { 'X-Site-Key': siteKey, ...headers }, ...at(from) })
  }

  async verify(siteKey: string, body: unknown, { from, headers = {} }: From = {}): Promise<Answer> {
    const answer = await call(`${this.#url}/verify`, {
      method: 'POST',
      headers: { 'X-Site-Key': siteKey, 'Content-Type': 'application/json', ...headers },
      body: typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body),
      ...at(from),
    })
    const { token } = answer.json ?? {}
    if (typeof token === 'string') noteSecret('token', token)
    return answer
  }

  verifyToken(apiKey: string, body: unknown, { from, headers = {} }: From = {}): Promise<Answer> {
    return call(`${this.#url}/verify-token`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${apiKey}`, 'Content-Type': 'application/json', ...headers },
      body: typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body),
      ...at(from),
    })
  }

  /** @param body an object is sent as JSON, parameters urlencoded, a FormData as multipart */
  async siteverify(body: SiteverifyBody, { from, headers = {}, path }: From & { path?: string } = {}) {
    const { contentType, bytes } = await encoded(body)
    return call(this.#url + (path ?? '/siteverify'), {
      method: 'POST',
      headers: { ...(contentType === undefined ? {} : { 'Content-Type': contentType }), ...headers },
      body: bytes,
      ...at(from),
    })
  }

  /** A challenge and its solution, not yet submitted. */
  async solved(siteKey: string, from: From = {}, more: Partial<Solution> = {}): Promise<Solution> {
    const answer = await this.challenge(siteKey, from)
    if (answer.status !== 200) throw new Error(`/challenge answered ${answer.status}: ${answer.text}`)
    const { nonce, difficulty } = answer.json
    return {
      nonce,
      counter: solve(nonce, difficulty),
      fingerprintHash: FINGERPRINT,
      environment: HONEST_ENVIRONMENT,
      ...more,
    }
  }

  /** A new token, obtained by the whole flow. */
  async token(siteKey: string, from: From = {}): Promise<string> {
    const answer = await this.verify(siteKey, await this.solved(siteKey, from), from)
    if (answer.json?.passed !== true) throw new Error(`/verify answered ${answer.status}: ${answer.text}`)
    return answer.json.token
  }
}

/** Strings and buffers are sent unchanged, with the given headers. */
export type SiteverifyBody = string | Buffer | URLSearchParams | FormData | object

async function encoded(body: SiteverifyBody): Promise<{ contentType: string | undefined; bytes: Buffer }> {
  if (typeof body === 'string' || Buffer.isBuffer(body))
    return { contentType: undefined, bytes: Buffer.from(body) }
  const isForm = body instanceof URLSearchParams || body instanceof FormData
  if (!isForm) return { contentType: 'application/json', bytes: Buffer.from(JSON.stringify(body)) }
  const response = new Response(body) // encodes as fetch does
  const contentType = response.headers.get('content-type')!
  return { contentType, bytes: Buffer.from(await response.arrayBuffer()) }
}

function at(from: string | undefined): { from?: string } {
  return from === undefined ? {} : { from }
}

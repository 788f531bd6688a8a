/** A client of the service's endpoints, with the widget's solvers. */

import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { COUNTER_MAX, FIRST_COUNTER, type PuzzleName } from '../../src/protocol/proof.ts'
import type { Solution } from '../../src/protocol/wire.ts'
import type { Solver } from '../../src/widget/solver/block.ts'
import { hashwxSolver } from '../../src/widget/solver/hashwx-solver.ts'
import { wasmSolver } from '../../src/widget/solver/solvers.ts'
import { noteSecret } from './canaries.ts'
import { type Answer, type Call, call } from './http.ts'

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

const builtModule = (name: string) => readFileSync(new URL(`../../dist/${name}`, import.meta.url))
export const SOLVERS = {
  sha256: wasmSolver(builtModule('simd.wasm')),
  hashwx: hashwxSolver(builtModule('hashwx.wasm')),
} satisfies Record<PuzzleName, Solver>

/** Finds a counter with the widget's solver, which takes a tenth of the time of hashing with node:crypto. */
export function solve(
  nonce: string,
  difficulty: number,
  puzzle: PuzzleName = 'sha256',
  start = FIRST_COUNTER,
): number {
  const counter = SOLVERS[puzzle](nonce, difficulty)(start, COUNTER_MAX + 1 - start)
  if (counter < 0) throw new Error(`no counter at ${difficulty} bits`)
  return counter
}

/** What an honest browser posts with a counter. */
export function solutionOf(nonce: string, counter = 1): Solution {
  return { nonce, counter, fingerprintHash: FINGERPRINT, environment: HONEST_ENVIRONMENT }
}

const JSON_TYPE = { 'Content-Type': 'application/json' }

export type Sender = Pick<Call, 'from' | 'headers'>

/** Calls a service as the scripts of pages and backends do. */
export class Client {
  readonly #url: string

  constructor(url: string) {
    this.#url = url
  }

  challenge(siteKey: string, { from, headers = {} }: Sender = {}): Promise<Answer> {
    return call(`${this.#url}/challenge`, { headers: { 'X-Site-Key': siteKey, ...headers }, from })
  }

  async verify(siteKey: string, body: unknown, { from, headers = {} }: Sender = {}): Promise<Answer> {
    const all = { ...JSON_TYPE, 'X-Site-Key': siteKey, ...headers }
    const answer = await this.#post('/verify', body, all, from)
    const { token } = answer.json ?? {}
    if (typeof token === 'string') noteSecret('token', token)
    return answer
  }

  verifyToken(apiKey: string, body: unknown, { from, headers = {} }: Sender = {}): Promise<Answer> {
    const authorization = { Authorization: `Bearer ${apiKey}` }
    return this.#post('/verify-token', body, { ...JSON_TYPE, ...authorization, ...headers }, from)
  }

  /** @param body an object is sent as JSON, parameters urlencoded, a FormData as multipart */
  async siteverify(body: SiteverifyBody, { from, headers = {}, path }: Sender & { path?: string } = {}) {
    const { type, bytes } = await encoded(body)
    return this.#post(path ?? '/siteverify', bytes, { ...type, ...headers }, from)
  }

  #post(path: string, body: unknown, headers: Sender['headers'] & object, from?: string): Promise<Answer> {
    const bytes = typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body)
    return call(this.#url + path, { method: 'POST', headers, body: bytes, from })
  }

  /** Requests a challenge and solves it. @param more fields that take the place of an honest browser's */
  async solved(siteKey: string, sender: Sender = {}, more: Partial<Solution> = {}): Promise<Solution> {
    const answer = await this.challenge(siteKey, sender)
    if (answer.status !== 200) throw new Error(`/challenge answered ${answer.status}: ${answer.text}`)
    const { nonce, difficulty, algorithm } = answer.json
    return { ...solutionOf(nonce, solve(nonce, difficulty, algorithm)), ...more }
  }

  async token(siteKey: string, sender: Sender = {}): Promise<string> {
    const answer = await this.verify(siteKey, await this.solved(siteKey, sender), sender)
    if (answer.json?.passed !== true) throw new Error(`/verify answered ${answer.status}: ${answer.text}`)
    return answer.json.token
  }
}

/** Strings and buffers are sent unchanged, with the given headers. */
type SiteverifyBody = string | Buffer | URLSearchParams | FormData | object

async function encoded(
  body: SiteverifyBody,
): Promise<{ type: Record<string, string>; bytes: string | Buffer }> {
  if (typeof body === 'string' || Buffer.isBuffer(body)) return { type: {}, bytes: body }
  const isForm = body instanceof URLSearchParams || body instanceof FormData
  if (!isForm) return { type: JSON_TYPE, bytes: JSON.stringify(body) }
  const response = new Response(body) // encodes as fetch does
  const type = { 'Content-Type': response.headers.get('content-type')! }
  return { type, bytes: Buffer.from(await response.arrayBuffer()) }
}

/** HTTP requests to the service under test, from any loopback address: on Linux all of 127.0.0.0/8 is local. */

import { Agent, type IncomingHttpHeaders, request } from 'node:http'
import { type RequestOptions, request as requestTls } from 'node:https'
import type { Duplex } from 'node:stream'
import { noteAnswer } from './canaries.ts'

export interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
  readonly bytes: Buffer
  // biome-ignore lint/suspicious/noExplicitAny: tests look into whatever came back
  readonly json: any
}

export interface Call {
  readonly method?: string
  readonly headers?: Record<string, string | string[]>
  readonly body?: string | Buffer
  /** The loopback address that the request comes from; 127.0.0.1 by default. */
  readonly from?: string | undefined
  /** For https: the name that is asked for, and a certificate to show. The server's certificate is not checked. */
  readonly tls?: Pick<RequestOptions, 'servername' | 'cert' | 'key'>
  /** Another program than powgate answers, so the search for secrets that powgate lets out (canaries.ts) leaves the answer out. */
  readonly isForeign?: true
}

const ANSWER_MS = 60_000

const agent = new Agent({ keepAlive: true, maxSockets: 256 })
const keepAlive = agent.keepSocketAlive.bind(agent)
const idleSinceMs = new WeakMap<Duplex, number>()
agent.keepSocketAlive = socket => {
  idleSinceMs.set(socket, performance.now())
  return keepAlive(socket)
}

type Listener = (method: string, path: string, answer: Answer) => void
let listener: Listener = () => {}

/** From now on `hear` is told of every answer to a call; what it throws is thrown by the call. */
export function listenToAnswers(hear: Listener): void {
  listener = hear
}

export function call(
  url: string,
  { method = 'GET', headers = {}, body, from, tls, isForeign }: Call = {},
): Promise<Answer> {
  // Node.js ends an idle connection after 5 s, and uWebSockets.js after 8: a request that is sent just then would fail.
  closeIdleConnections(4000) // not by a timer, which a test that computes for seconds would hold up
  return new Promise((resolve, reject) => {
    const connection = tls === undefined ? { agent } : { ...tls, agent: false, rejectUnauthorized: false }
    const options = { method, headers, ...connection, ...(from === undefined ? {} : { localAddress: from }) }
    const outgoing = (tls === undefined ? request : requestTls)(url, options, incoming => {
      const chunks: Buffer[] = []
      incoming.on('data', chunk => chunks.push(chunk))
      incoming.on('end', () => {
        const bytes = Buffer.concat(chunks)
        const text = bytes.toString()
        if (!isForeign) noteAnswer(url, incoming.statusCode ?? 0, text, incoming.headers)
        const { statusCode: status = 0, headers } = incoming
        const answer = { status, headers, text, bytes, json: parse(text) }
        try {
          listener(method, new URL(url).pathname, answer)
          resolve(answer)
        } catch (error) {
          reject(error)
        }
      })
      incoming.on('error', reject)
    })
    outgoing.on('error', reject)
    outgoing.setTimeout(ANSWER_MS, () => outgoing.destroy(new Error(`no answer within ${ANSWER_MS} ms`)))
    outgoing.end(body)
  })
}

/** Closes connections of earlier calls that are idle for so long; by default all, so that a server that stops waits for none. */
export function closeIdleConnections(idleMs = 0): void {
  const nowMs = performance.now()
  for (const socket of Object.values(agent.freeSockets).flatMap(sockets => sockets ?? []))
    if (nowMs - idleSinceMs.get(socket)! >= idleMs) socket.destroy()
}

/** @returns undefined if the text is no JSON */
export function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

let nextAddress = 0

/** A loopback address that no earlier call used, so that limits start fresh. */
export function freshAddress(): string {
  nextAddress++
  return `127.${1 + (nextAddress >> 16)}.${(nextAddress >> 8) & 0xff}.${nextAddress & 0xff}`
}

/** Asks once. If there is no answer, or a 503, waits for its Retry-After (or a second) before it returns. */
export async function answerOrWait(ask: () => Promise<Answer>): Promise<Answer | undefined> {
  const answer = await ask().catch(() => undefined)
  if (answer === undefined || answer.status === 503)
    await new Promise(resolve => setTimeout(resolve, 1000 * Number(answer?.headers['retry-after'] ?? 1)))
  return answer
}

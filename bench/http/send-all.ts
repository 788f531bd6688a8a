/** Sends each request once, as fast as the server answers. Prepares a measurement. */

import { Connection, type ConnectionOwner } from './connection.ts'
import { requestAt, type Traffic } from './traffic.ts'

export interface SendAllSpec {
  /** On 127.0.0.1. */
  readonly port: number
  readonly connections: number
  /** So long after the first request no further request is sent. */
  readonly msMax: number
  /** What the body of every answer must contain. */
  readonly marker: string
}

export interface SendAllResult {
  /** The first so many requests were sent, and answered. */
  readonly sent: number
  readonly elapsedMs: number
}

/** Rejects if a connection fails or an answer is not the expected one. */
export function sendAll(spec: SendAllSpec, traffic: Traffic): Promise<SendAllResult> {
  return new Promise((resolve, reject) => new Sending(spec, traffic, resolve, reject).start())
}

const LAST_ANSWERS_MS = 5000

class Sending implements ConnectionOwner {
  readonly marker: Buffer
  readonly #spec: SendAllSpec
  readonly #traffic: Traffic
  readonly #resolve: (result: SendAllResult) => void
  readonly #reject: (error: Error) => void
  readonly #connections: Connection[] = []
  #startMs: number | undefined
  #timer: NodeJS.Timeout | undefined
  #next = 0
  #answers = 0
  #isOver = false

  constructor(
    spec: SendAllSpec,
    traffic: Traffic,
    resolve: (result: SendAllResult) => void,
    reject: (error: Error) => void,
  ) {
    this.#spec = spec
    this.#traffic = traffic
    this.#resolve = resolve
    this.#reject = reject
    this.marker = Buffer.from(spec.marker)
  }

  start(): void {
    const count = Math.min(this.#spec.connections, this.#traffic.count)
    for (let index = 0; index < count; index++) {
      this.#connections.push(new Connection(this, this.#spec.port))
    }
    const waitMs = this.#spec.msMax + LAST_ANSWERS_MS
    this.#timer = setTimeout(() => this.fail(`requests were not answered within ${waitMs} ms`), waitMs)
  }

  send(connection: Connection): void {
    this.#startMs ??= performance.now()
    const isLate = performance.now() - this.#startMs > this.#spec.msMax
    if (this.#isOver || isLate || this.#next === this.#traffic.count) return
    connection.send(requestAt(this.#traffic, this.#next++))
  }

  answered(connection: Connection, _latencyMs: number, isGood: boolean): void {
    if (!isGood) {
      this.fail(`an answer was not the expected one: ${connection.lastAnswer.replaceAll('\r\n', ' | ')}`)
      return
    }
    this.#answers++
    this.send(connection)
    if (this.#answers < this.#next) return
    this.#close()
    this.#resolve({ sent: this.#answers, elapsedMs: performance.now() - this.#startMs! })
  }

  fail(problem: string): void {
    if (this.#isOver) return
    this.#close()
    this.#reject(new Error(problem))
  }

  #close(): void {
    this.#isOver = true
    clearTimeout(this.#timer)
    for (const connection of this.#connections) connection.close()
  }
}

/** Connections of visitors, each with at most one unanswered request; and bursts of requests over many of them. */

import { connect, type Socket } from 'node:net'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { challengeText, OverloadAnswers, type Step } from '../harness/load/visitor-requests.ts'

export interface LineOwner {
  /** Called once. */
  connected(line: Line): void
  answered(line: Line, answer: string): void
  /** The connection has ended, but not by `close`. */
  lost(line: Line, why: string): void
}

/** Answers of the service are shorter; longer ones arrive in pieces. */
const READ_BYTES = 2048
const LENGTH_NAME = 'Content-Length: '

export class Line {
  /** The visitor of the request that was sent last. */
  visitor = 0
  step: Step = 'challenge'
  sentAtMs = 0
  readonly openedAtMs = performance.now()
  readonly #owner: LineOwner
  readonly #socket: Socket
  #isBusy = false
  #isClosed = false
  #received = ''

  constructor(owner: LineOwner, port: number) {
    this.#owner = owner
    const callback = (length: number, bytes: Uint8Array) =>
      this.#take((bytes as Buffer).toString('latin1', 0, length))
    const onread = { buffer: Buffer.allocUnsafe(READ_BYTES), callback }
    this.#socket = connect({ port, host: '127.0.0.1', noDelay: true, onread })
    let why = 'it was closed'
    this.#socket.once('connect', () => owner.connected(this))
    this.#socket.once('error', error => {
      why = error.message
    })
    this.#socket.once('close', () => {
      if (!this.#isClosed) owner.lost(this, why)
    })
  }

  /** Whether an answer is outstanding. */
  get isBusy(): boolean {
    return this.#isBusy
  }

  send(visitor: number, step: Step, text: string): void {
    this.visitor = visitor
    this.step = step
    this.#isBusy = true
    this.#received = ''
    this.sentAtMs = performance.now()
    this.#socket.write(text, 'latin1')
  }

  /** Ends the connection by a reset, which leaves no port in TIME_WAIT: a minute has more connections than ports. */
  close(): void {
    this.#isClosed = true
    this.#socket.resetAndDestroy()
  }

  #take(text: string): boolean {
    const answer = this.#received === '' ? text : this.#received + text
    this.#received = answer
    const headEnd = answer.indexOf('\r\n\r\n')
    if (headEnd < 0 || !this.#isBusy) return true
    const at = answer.indexOf(LENGTH_NAME) + LENGTH_NAME.length
    if (answer.length < headEnd + 4 + Number.parseInt(answer.slice(at, at + 8), 10)) return true
    this.#isBusy = false
    this.#owner.answered(this, answer)
    return true
  }
}

/** Opens connections, a few hundred at a time: a listener's backlog holds 512, and others would wait for a second. */
export async function openLines(owner: LineOwner, port: number, count: number): Promise<Line[]> {
  const lines: Line[] = []
  let connected = 0
  return await new Promise((resolve, reject) => {
    const more = () => {
      while (lines.length < count && lines.length - connected < CONNECTING_MAX)
        lines.push(new Line(counting, port))
    }
    const counting: LineOwner = {
      connected(line) {
        connected++
        owner.connected(line)
        if (connected === count) resolve(lines)
        else more()
      },
      answered: (line, answer) => owner.answered(line, answer),
      lost(line, why) {
        owner.lost(line, why)
        if (connected < count) reject(new Error(`a connection could not be opened: ${why}`))
      },
    }
    more()
  })
}

const CONNECTING_MAX = 200

export interface BurstsSpec {
  /** Port on 127.0.0.1. */
  readonly port: number
  readonly siteKey: string
  /** Each connection sends one challenge request in each burst. */
  readonly connections: number
  readonly bursts: number
  readonly quietMs: number
}

export interface BurstsResult {
  /** For each burst, the time from its first request to its last answer. */
  readonly lastMs: readonly number[]
  readonly answered: number
  readonly shed: number
  /** Answers that were neither a challenge nor a well-formed refusal, and lost connections. */
  readonly badAnswers: readonly string[]
  /** The greatest delay of this process's own event loop. */
  readonly ownLateMaxMs: number
}

const ANSWERS_MS = 20_000

/** Continues over all bursts, because two visitors of one address would share its limits. */
let nextVisitor = 0

/** Bursts of requests that are all sent at one moment, each over an open connection, with quiet in between. */
export async function sendBursts(spec: BurstsSpec): Promise<BurstsResult> {
  const { port, siteKey, connections, bursts, quietMs } = spec
  const overloadAnswers = new OverloadAnswers()
  const badAnswers: string[] = []
  let [answered, shed, waiting] = [0, 0, 0]
  let done = () => {}
  const countDown = () => {
    waiting--
    if (waiting === 0) done()
  }
  const lines = await openLines(
    {
      connected: () => {},
      answered({ step }, answer) {
        if (answer.startsWith('200', 9) && answer.includes('"nonce":"')) answered++
        else if (overloadAnswers.has(answer, step)) shed++
        else badAnswers.push(answer.slice(0, 600))
        countDown()
      },
      lost(line, why) {
        badAnswers.push(`a connection was lost: ${why}`)
        if (line.isBusy) countDown()
      },
    },
    port,
    connections,
  )
  const burst = async () => {
    const texts = lines.map(() => challengeText(siteKey, burstAddress(nextVisitor++)))
    waiting = lines.length
    const startMs = performance.now()
    const allAnswered = new Promise<void>(resolve => (done = resolve))
    for (const [index, line] of lines.entries()) line.send(index, 'challenge', texts[index]!)
    const timer = setTimeout(() => {
      badAnswers.push(`${waiting} connections without an answer`)
      done()
    }, ANSWERS_MS)
    await allAnswered
    clearTimeout(timer)
    return performance.now() - startMs
  }
  const lateness = monitorEventLoopDelay({ resolution: 1 })
  lateness.enable()
  const lastMs: number[] = []
  while (lastMs.length < bursts) {
    await sleep(quietMs)
    lastMs.push(await burst())
  }
  lateness.disable()
  for (const line of lines) line.close()
  return { lastMs, answered, shed, badAnswers, ownLateMaxMs: Math.max(0, lateness.max / 1e6 - 1) }
}

const burstAddress = (visitor: number) =>
  `12.${(visitor >> 16) & 0xff}.${(visitor >> 8) & 0xff}.${visitor & 0xff}`

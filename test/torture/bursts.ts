/** Bursts of requests that are all sent at one moment, each over an open connection, with quiet in between. */

import { monitorEventLoopDelay } from 'node:perf_hooks'
import { challengeText, OverloadAnswers } from '../harness/load/visitor-requests.ts'
import { type Line, type LineOwner, openLines } from './visitor-line.ts'

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
  /** Answers that were neither a challenge nor a well-formed refusal, and lost connections; some of them. */
  readonly bad: number
  readonly badAnswers: readonly string[]
  /** The greatest delay of this process's own event loop. */
  readonly ownLateMaxMs: number
}

const ANSWERS_MS = 20_000
const SHOWN = 5

/** Continues over all bursts, because two visitors of one address would share its limits. */
let nextVisitor = 0

export async function sendBursts(spec: BurstsSpec): Promise<BurstsResult> {
  const bursts = new Bursts(spec)
  return await bursts.run()
}

class Bursts implements LineOwner {
  readonly #spec: BurstsSpec
  readonly #overloadAnswers = new OverloadAnswers()
  readonly #badAnswers: string[] = []
  #answered = 0
  #shed = 0
  #bad = 0
  #waiting = 0
  #done: () => void = () => {}

  constructor(spec: BurstsSpec) {
    this.#spec = spec
  }

  async run(): Promise<BurstsResult> {
    const { port, connections, bursts, quietMs } = this.#spec
    const lines = await openLines(this, port, connections)
    const lateness = monitorEventLoopDelay({ resolution: 1 })
    lateness.enable()
    const lastMs: number[] = []
    for (let burst = 0; burst < bursts; burst++) {
      await sleep(quietMs)
      lastMs.push(await this.#burst(lines))
    }
    lateness.disable()
    for (const line of lines) line.close()
    return {
      lastMs,
      answered: this.#answered,
      shed: this.#shed,
      bad: this.#bad,
      badAnswers: this.#badAnswers,
      ownLateMaxMs: Math.max(0, lateness.max / 1e6 - 1),
    }
  }

  async #burst(lines: readonly Line[]): Promise<number> {
    const texts = lines.map(() => challengeText(this.#spec.siteKey, burstAddress(nextVisitor++)))
    this.#waiting = lines.length
    const startMs = performance.now()
    const answered = new Promise<void>(resolve => {
      this.#done = resolve
    })
    for (const [index, line] of lines.entries()) line.send(index, 'challenge', texts[index]!)
    const timer = setTimeout(() => {
      this.#note(`${this.#waiting} connections without an answer`)
      this.#done()
    }, ANSWERS_MS)
    await answered
    clearTimeout(timer)
    return performance.now() - startMs
  }

  connected(): void {}

  answered({ step }: Line, answer: string): void {
    if (answer.startsWith('200', 9) && answer.includes('"nonce":"')) this.#answered++
    else if (this.#overloadAnswers.has(answer, step)) this.#shed++
    else this.#note(answer)
    this.#countDown()
  }

  lost(line: Line, why: string): void {
    this.#note(`a connection was lost: ${why}`)
    if (line.isBusy) this.#countDown()
  }

  #countDown(): void {
    this.#waiting--
    if (this.#waiting === 0) this.#done()
  }

  #note(answer: string): void {
    this.#bad++
    if (this.#badAnswers.length < SHOWN) this.#badAnswers.push(answer.slice(0, 600))
  }
}

const burstAddress = (visitor: number) =>
  `12.${(visitor >> 16) & 0xff}.${(visitor >> 8) & 0xff}.${visitor & 0xff}`

const sleep = (ms: number) => new Promise(resolve => setTimeout(resolve, ms))

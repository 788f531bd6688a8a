/** Thousands of slow clients in a process of their own, so that their cost does not affect the measured honest clients. */

import { type ChildProcess, fork } from 'node:child_process'

export interface CrowdOrder {
  /** Indices into SLOW_KINDS, one for each client. */
  readonly kinds: readonly number[]
  readonly port: number
  readonly siteKey: string
  /** Sent first for the PROXY protocol, hexadecimal; empty: nothing. */
  readonly header: string
}

export interface CrowdState {
  readonly connected: number
  /** Clients that could not connect. */
  readonly failed: number
  /** Clients whose connections the service has not ended. */
  readonly left: number
  readonly leftKinds: readonly string[]
  /** The longest life of ended connections, by group. */
  readonly livedMs: Readonly<Record<string, number>>
}

const CHILD = new URL('./slow-crowd-child.ts', import.meta.url).pathname

export class SlowCrowd {
  readonly #process: ChildProcess
  #state: CrowdState = { connected: 0, failed: 0, left: 0, leftKinds: [], livedMs: {} }
  #heardAtMs = 0

  constructor(order: CrowdOrder) {
    this.#process = fork(CHILD)
    this.#process.on('message', (state: CrowdState) => {
      this.#state = state
      this.#heardAtMs = performance.now()
    })
    this.#process.send(order)
  }

  /** The state a moment ago; all zero until all clients have been opened. */
  get state(): CrowdState {
    return this.#state
  }

  get isAlive(): boolean {
    return performance.now() - this.#heardAtMs < 10_000
  }

  stop(): void {
    this.#process.kill('SIGKILL')
  }
}

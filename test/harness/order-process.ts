/**
 * A process of its own that carries out orders, one at a time: a load generator, so that its CPU time is counted apart, or the
 * code of another tree.
 */

import { type ChildProcess, type ForkOptions, fork } from 'node:child_process'
import { once } from 'node:events'

type Answer = { readonly result: unknown } | { readonly problem: string }

/** To put an end to what it does and to stop what it has started. */
const STOP_MS_MAX = 15_000

export class OrderProcess<Order> {
  readonly #child: ChildProcess
  readonly #ended: Promise<unknown>

  /** @param entry a module that calls `carryOut` */
  constructor(entry: string | URL, args: readonly string[] = [], options: ForkOptions = {}) {
    // Structured clones, so that Infinity stays Infinity.
    this.#child = fork(entry, [...args], { serialization: 'advanced', ...options })
    this.#ended = once(this.#child, 'exit')
  }

  /** Rejects with the reason if it cannot be done. */
  ask<Result>(order: Order): Promise<Result> {
    return new Promise((resolve, reject) => {
      const onExit = (code: number | null) => reject(new Error(`the process has ended with ${code}`))
      this.#child.once('exit', onExit)
      this.#child.once('message', (answer: Answer) => {
        this.#child.off('exit', onExit)
        if ('problem' in answer) reject(new Error(answer.problem))
        else resolve(answer.result as Result)
      })
      // Without a callback, a process that has gone would end this one before its servers are stopped.
      this.#child.send(order as object, error => {
        if (error !== null) reject(error)
      })
    })
  }

  kill(): void {
    this.#child.kill('SIGKILL')
  }

  /** Resolves when it has ended, and whatever it had started. */
  async stop(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return
    const timer = setTimeout(() => this.kill(), STOP_MS_MAX)
    if (this.#child.connected) this.#child.disconnect()
    await this.#ended
    clearTimeout(timer)
  }
}

/** The other side: carries out orders until its parent has gone. */
export function carryOut<Order>(
  act: (order: Order) => Promise<unknown>,
  clean: () => Promise<void> = async () => {},
): void {
  const send = (answer: Answer) => {
    if (process.connected) process.send!(answer)
  }
  process.on('message', (order: Order) => {
    act(order).then(
      result => send({ result }),
      (error: Error) => send({ problem: error.message }),
    )
  })
  // From a terminal Ctrl-C comes to all processes; the parent ends this one when it is time.
  process.on('SIGINT', () => {})
  process.on('disconnect', () => void clean().finally(() => process.exit()))
}

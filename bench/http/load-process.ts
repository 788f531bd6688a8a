/** The load generator as the bench sees it: a process of its own, so that its CPU time is nobody else's. */

import { type ChildProcess, fork } from 'node:child_process'
import type { LoadResult, LoadSpec } from './load.ts'
import type { TrafficSpec } from './traffic.ts'

export type LoadOrder =
  | { readonly type: 'build'; readonly spec: TrafficSpec }
  | { readonly type: 'run'; readonly spec: LoadSpec }

export type LoadAnswer =
  | { readonly type: 'built' }
  | { readonly type: 'measured'; readonly result: LoadResult }
  | { readonly type: 'failed'; readonly problem: string }

const CHILD = new URL('./load-child.ts', import.meta.url).pathname

export class LoadProcess {
  readonly #process: ChildProcess = fork(CHILD)

  /** Builds requests, in place of those before; they are sent by the runs that follow. */
  async build(spec: TrafficSpec): Promise<void> {
    await this.#ask({ type: 'build', spec })
  }

  async run(spec: LoadSpec): Promise<LoadResult> {
    const answer = await this.#ask({ type: 'run', spec })
    if (answer.type !== 'measured') throw new Error(`the load generator answered "${answer.type}"`)
    return answer.result
  }

  stop(): void {
    this.#process.kill()
  }

  #ask(order: LoadOrder): Promise<LoadAnswer> {
    return new Promise((resolve, reject) => {
      const onExit = () => reject(new Error('the load generator has ended'))
      const onMessage = (answer: LoadAnswer) => {
        this.#process.off('exit', onExit)
        if (answer.type === 'failed') reject(new Error(answer.problem))
        else resolve(answer)
      }
      this.#process.once('message', onMessage)
      this.#process.once('exit', onExit)
      // Without a callback, a generator that has gone would end the bench before its servers are stopped.
      this.#process.send(order, error => {
        if (error !== null) reject(error)
      })
    })
  }
}

/** Controls the load generator. The generator has a process of its own, so that its CPU time is counted apart. */

import { type ChildProcess, fork } from 'node:child_process'
import type { LoadResult, LoadSpec } from './load.ts'
import type { PacedResult, PacedSpec } from './paced-load.ts'
import type { SendAllResult, SendAllSpec } from './send-all.ts'
import type { TrafficSpec } from './traffic.ts'

export type LoadOrder =
  | { readonly type: 'build'; readonly spec: TrafficSpec }
  | { readonly type: 'run'; readonly spec: LoadSpec }
  | { readonly type: 'pace'; readonly spec: PacedSpec }
  | { readonly type: 'send-all'; readonly traffic: TrafficSpec; readonly spec: SendAllSpec }

export type LoadAnswer =
  | { readonly type: 'built' }
  | { readonly type: 'measured'; readonly result: LoadResult }
  | { readonly type: 'paced'; readonly result: PacedResult }
  | { readonly type: 'sent'; readonly result: SendAllResult }
  | { readonly type: 'failed'; readonly problem: string }

const CHILD = new URL('./load-child.ts', import.meta.url).pathname

export class LoadProcess {
  readonly #process: ChildProcess = fork(CHILD)

  /** Builds requests, in place of those before; they are sent by the runs that follow. */
  async build(spec: TrafficSpec): Promise<void> {
    await this.#ask({ type: 'build', spec }, 'built')
  }

  /** As fast as the server answers. */
  async run(spec: LoadSpec): Promise<LoadResult> {
    return (await this.#ask({ type: 'run', spec }, 'measured')).result
  }

  /** At a fixed rate. */
  async pace(spec: PacedSpec): Promise<PacedResult> {
    return (await this.#ask({ type: 'pace', spec }, 'paced')).result
  }

  /** Builds other requests, which are sent once and forgotten: those that were built before stay. */
  async sendAll(traffic: TrafficSpec, spec: SendAllSpec): Promise<SendAllResult> {
    return (await this.#ask({ type: 'send-all', traffic, spec }, 'sent')).result
  }

  stop(): void {
    this.#process.kill()
  }

  async #ask<Type extends LoadAnswer['type']>(order: LoadOrder, type: Type) {
    const answer = await this.#answerTo(order)
    if (answer.type !== type) throw new Error(`the load generator answered "${answer.type}"`)
    return answer as Extract<LoadAnswer, { type: Type }>
  }

  #answerTo(order: LoadOrder): Promise<LoadAnswer> {
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

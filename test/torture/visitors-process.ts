/** Visitors in a process of their own, with its own CPU time. This file is also the entry of that process. */

import { type ChildProcess, fork } from 'node:child_process'
import { type BurstsResult, type BurstsSpec, sendBursts } from './bursts.ts'
import { Visitors, type VisitorsResult, type VisitorsSpec } from './visitors.ts'

type Order =
  | { readonly type: 'visitors'; readonly spec: VisitorsSpec }
  | { readonly type: 'bursts'; readonly spec: BurstsSpec }
type Answer = { readonly result: unknown } | { readonly problem: string }

export class VisitorsProcess {
  /** Messages are cloned structurally, so that Infinity stays Infinity. */
  readonly #process: ChildProcess = fork(new URL(import.meta.url).pathname, ['visitors'], {
    serialization: 'advanced',
  })

  async run(spec: VisitorsSpec): Promise<VisitorsResult> {
    return (await this.#ask({ type: 'visitors', spec })) as VisitorsResult
  }

  async burst(spec: BurstsSpec): Promise<BurstsResult> {
    return (await this.#ask({ type: 'bursts', spec })) as BurstsResult
  }

  #ask(order: Order): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const onExit = () => reject(new Error('the visitors have ended'))
      this.#process.once('exit', onExit)
      this.#process.once('message', (answer: Answer) => {
        this.#process.off('exit', onExit)
        if ('problem' in answer) reject(new Error(answer.problem))
        else resolve(answer.result)
      })
      this.#process.send(order)
    })
  }

  stop(): void {
    this.#process.kill()
  }
}

function obey(order: Order): Promise<unknown> {
  return order.type === 'visitors' ? new Visitors(order.spec).run() : sendBursts(order.spec)
}

if (process.argv[2] === 'visitors' && process.send !== undefined) {
  process.on('message', (order: Order) => {
    obey(order).then(
      result => process.send!({ result } satisfies Answer),
      (error: Error) => process.send!({ problem: error.stack ?? error.message } satisfies Answer),
    )
  })
  process.on('disconnect', () => process.exit())
}

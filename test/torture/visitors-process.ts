/** Visitors in a process of their own, which has its CPU time for itself. This file is also the entry of that process. */

import { type ChildProcess, fork } from 'node:child_process'
import { Visitors, type VisitorsResult, type VisitorsSpec } from './visitors.ts'

/** Infinity goes over no channel. */
type Order = Omit<VisitorsSpec, 'visitorsPerSecond'> & { readonly visitorsPerSecond: number | 'all' }
type Answer = { readonly result: VisitorsResult } | { readonly problem: string }

export class VisitorsProcess {
  readonly #process: ChildProcess = fork(new URL(import.meta.url).pathname, ['visitors'])

  run(spec: VisitorsSpec): Promise<VisitorsResult> {
    const { visitorsPerSecond } = spec
    const order: Order = {
      ...spec,
      visitorsPerSecond: visitorsPerSecond === Infinity ? 'all' : visitorsPerSecond,
    }
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

if (process.argv[2] === 'visitors' && process.send !== undefined) {
  process.on('message', (order: Order) => {
    const { visitorsPerSecond } = order
    new Visitors({ ...order, visitorsPerSecond: visitorsPerSecond === 'all' ? Infinity : visitorsPerSecond })
      .run()
      .then(
        result => process.send!({ result } satisfies Answer),
        (error: Error) => process.send!({ problem: error.stack ?? error.message } satisfies Answer),
      )
  })
  process.on('disconnect', () => process.exit())
}

/** Visitors in a process of their own, with its own CPU time. This file is also the entry of that process. */

import { carryOut, OrderProcess } from '../harness/processes.ts'
import { type BurstsResult, type BurstsSpec, sendBursts } from './bursts.ts'
import { Visitors, type VisitorsResult, type VisitorsSpec } from './visitors.ts'

type Order =
  | { readonly type: 'visitors'; readonly spec: VisitorsSpec }
  | { readonly type: 'bursts'; readonly spec: BurstsSpec }

const ROLE = 'visitors'

export class VisitorsProcess {
  readonly #process = new OrderProcess<Order>(new URL(import.meta.url), [ROLE])

  run(spec: VisitorsSpec): Promise<VisitorsResult> {
    return this.#process.ask({ type: 'visitors', spec })
  }

  burst(spec: BurstsSpec): Promise<BurstsResult> {
    return this.#process.ask({ type: 'bursts', spec })
  }

  stop(): void {
    this.#process.kill()
  }
}

if (process.argv[2] === ROLE && process.send !== undefined)
  carryOut((order: Order) =>
    order.type === 'visitors' ? new Visitors(order.spec).run() : sendBursts(order.spec),
  )

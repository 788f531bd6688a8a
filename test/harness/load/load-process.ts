/** The load generator in a process of its own, so that its CPU time is counted apart. This file is that process's entry too. */

import { carryOut, OrderProcess } from '../processes.ts'
import {
  type LoadResult,
  type LoadSpec,
  type PacedResult,
  type PacedSpec,
  runLoad,
  runPacedLoad,
  type SendOnceSpec,
  sendOnce,
} from './loops.ts'
import { buildTraffic, type Traffic, type TrafficSpec } from './traffic.ts'
import { type VisitorsResult, type VisitorsSpec, visit } from './visitors.ts'

type Order =
  | { readonly type: 'build'; readonly spec: TrafficSpec }
  | { readonly type: 'run'; readonly spec: LoadSpec }
  | { readonly type: 'pace'; readonly spec: PacedSpec }
  | { readonly type: 'send-once'; readonly traffic: TrafficSpec; readonly spec: SendOnceSpec }
  | { readonly type: 'visit'; readonly spec: VisitorsSpec }

const ROLE = 'load'

export class LoadProcess {
  readonly #process = new OrderProcess<Order>(new URL(import.meta.url), [ROLE])

  /** Builds requests, in place of those before; they are sent by the runs that follow. */
  async build(spec: TrafficSpec): Promise<void> {
    await this.#process.ask({ type: 'build', spec })
  }

  run(spec: LoadSpec): Promise<LoadResult> {
    return this.#process.ask({ type: 'run', spec })
  }

  pace(spec: PacedSpec): Promise<PacedResult> {
    return this.#process.ask({ type: 'pace', spec })
  }

  /** Builds other requests, which are sent once and forgotten: those that were built before stay. */
  sendOnce(traffic: TrafficSpec, spec: SendOnceSpec): Promise<number> {
    return this.#process.ask({ type: 'send-once', traffic, spec })
  }

  /** Whole visits, whose requests are made as they come. */
  visit(spec: VisitorsSpec): Promise<VisitorsResult> {
    return this.#process.ask({ type: 'visit', spec })
  }

  stop(): void {
    this.#process.kill()
  }
}

let traffic: Traffic | undefined

async function act(order: Order): Promise<unknown> {
  switch (order.type) {
    case 'build':
      traffic = undefined // first, so that never two of them take memory
      traffic = buildTraffic(order.spec)
      return undefined
    case 'run':
      return await runLoad(order.spec, built())
    case 'pace':
      return await runPacedLoad(order.spec, built())
    case 'send-once':
      return await sendOnce(order.spec, buildTraffic(order.traffic))
    case 'visit':
      return await visit(order.spec)
  }
}

function built(): Traffic {
  if (traffic === undefined) throw new Error('there are no requests')
  return traffic
}

if (process.argv[2] === ROLE && process.send !== undefined) carryOut(act)

/** The generator of loads that were built before, in a process of its own, so that its CPU time is counted apart. This file is that process's entry too. */

import { buildTraffic, type TrafficSpec } from '../../test/harness/load/traffic.ts'
import { carryOut, OrderProcess } from '../../test/harness/processes.ts'
import { type Requests, type RunResult, type RunSpec, runLoad } from './prebuilt.ts'

type Order =
  | { readonly type: 'build'; readonly spec: TrafficSpec }
  | { readonly type: 'run'; readonly spec: RunSpec; readonly others: TrafficSpec | undefined }

const ROLE = 'load'

export class LoadProcess {
  readonly #process = new OrderProcess<Order>(new URL(import.meta.url), [ROLE])

  /** Builds requests, in place of those before; they are sent by the runs that follow. */
  async build(spec: TrafficSpec): Promise<void> {
    await this.#process.ask({ type: 'build', spec })
  }

  /** @param others requests to build and send instead; those that were built before stay */
  run(spec: RunSpec, others?: TrafficSpec): Promise<RunResult> {
    return this.#process.ask({ type: 'run', spec, others })
  }

  stop(): void {
    this.#process.kill()
  }
}

let requests: Requests | undefined

const newRequests = (spec: TrafficSpec): Requests => ({ traffic: buildTraffic(spec), next: 0 })

async function act(order: Order): Promise<unknown> {
  if (order.type === 'build') {
    requests = undefined // first, so that never two of them take memory
    requests = newRequests(order.spec)
    return undefined
  }
  const { spec, others } = order
  const sent = others === undefined ? requests : newRequests(others)
  if (sent === undefined) throw new Error('there are no requests')
  return await runLoad(spec, sent)
}

if (process.argv[2] === ROLE && process.send !== undefined) carryOut(act)

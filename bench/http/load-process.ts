/** Entry of the process that generates loads of requests that were built before, apart so that its CPU time is counted apart. */

import { carryOut } from '../../test/harness/processes.ts'
import { type Requests, type RunSpec, runLoad } from './prebuilt.ts'
import { buildTraffic, type TrafficSpec } from './traffic.ts'

export type LoadOrder =
  /** Builds requests, in place of those before; they are sent by the runs that follow. */
  | { readonly build: TrafficSpec }
  /** `others`: requests to build and send instead; those that were built before stay. */
  | { readonly run: RunSpec; readonly others?: TrafficSpec }

let requests: Requests | undefined

const newRequests = (spec: TrafficSpec): Requests => ({ traffic: buildTraffic(spec), next: 0 })

carryOut(async (order: LoadOrder) => {
  if ('run' in order)
    return await runLoad(order.run, order.others === undefined ? requests! : newRequests(order.others))
  requests = undefined // first, so that never two of them take memory
  requests = newRequests(order.build)
  return undefined
})

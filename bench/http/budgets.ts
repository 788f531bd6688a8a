/** CPU budgets of requests, measured with 64 connections and a new address for each request. */

import type { StoreKind } from '../../test/harness/service.ts'
import type { Endpoint } from './traffic.ts'

export const BARE_US = 7.5

/** By store: CPU time against the bare server's. `redisUs`: of Redis, on a core that runs the bare server at BARE_US. */
export const BUDGETS: Readonly<Record<Endpoint, Readonly<Record<StoreKind | 'redisUs', number>>>> = {
  challenge: { redis: 2.2, embedded: 1.9, redisUs: 4.5 },
  verify: { redis: 2.4, embedded: 2.2, redisUs: 4.5 },
  'verify-token': { redis: 2.3, embedded: 2.3, redisUs: 6 },
}

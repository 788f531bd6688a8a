/** A measured server under one load after another. Built requests to a service are used up: each load goes on where the last one ended. */

import type { OrderProcess } from '../../test/harness/processes.ts'
import type { StoreKind } from '../../test/harness/service.ts'
import { startChildServer } from '../child-server.ts'
import type { LoadOrder } from './load-process.ts'
import type { Options } from './options.ts'
import type { RunResult } from './prebuilt.ts'
import type { Probe } from './probe.ts'
import { startService } from './server.ts'
import { type Endpoint, MARKERS } from './traffic.ts'

/** What all measurements of a run share. */
export interface Rig {
  readonly options: Options
  readonly load: OrderProcess<LoadOrder>
  readonly probe: Probe
}

type Server = Pick<Awaited<ReturnType<typeof startService>>, 'port' | 'ownPids' | 'redisPids'>
export type Target = ReturnType<typeof targetOf>

/** Each rate is sent for so long before it is measured. */
export const RATE_WARM_UP_MS = 500

/** @param marker what each body must contain; '' means the bare server: any body will do, and requests are sent again when they run out */
function targetOf({ load }: Rig, { port, ownPids, redisPids }: Server, marker: string, seeded?: number) {
  const spec = { port, pids: [...ownPids, ...redisPids], marker, recycles: marker === '' }
  return {
    workerPid: ownPids[0]!,
    /** Number of the server's own processes, which come first in the results. */
    ownCount: ownPids.length,
    /** How many visitors have fetched their challenge; only for /verify. */
    seeded,
    /** Sends requests as fast as they are answered. */
    closedLoop: (measureMs: number, warmUpMs = 0) =>
      load.ask<RunResult>({ run: { ...spec, measureMs, warmUpMs } }),
    /** Sends requests at this rate, whatever the server does. */
    atRate: (perSecond: number, measureMs: number, warmUpMs = RATE_WARM_UP_MS) =>
      load.ask<RunResult>({ run: { ...spec, perSecond, measureMs, warmUpMs } }),
  }
}

/**
 * Before /verify is measured, its visitors ask /challenge, so that the store has a record of each; their solutions are minted ones. This
 * takes half a minute at most, because the store keeps a record for a minute, and the first visitors must still have theirs.
 */
export const SEED_MS_MAX = 30_000

interface Wanted {
  readonly endpoint: Endpoint
  readonly store: StoreKind
  /** Requests to build. */
  readonly count: number
  /** SEED_MS_MAX at most. */
  readonly seedMs?: number
  readonly env?: Record<string, string>
}

/** Measures a fresh service with requests built for it. */
export async function onService<Result>(
  rig: Rig,
  { endpoint, store, count, seedMs = SEED_MS_MAX, env }: Wanted,
  measure: (target: Target) => Promise<Result>,
): Promise<Result> {
  const service = await startService(store, env)
  try {
    const traffic = { endpoint, count, target: service.target }
    await rig.load.ask({ build: traffic })
    const fetchChallenges = async () => {
      const measureMs = Math.min(SEED_MS_MAX, seedMs)
      const run = { port: service.port, pids: [], marker: MARKERS.challenge, measureMs }
      const others = { ...traffic, endpoint: 'challenge' } as const // requests of this run alone, of the same visitors
      return (await rig.load.ask<RunResult>({ run, others })).sent
    }
    const seeded = endpoint === 'verify' ? await fetchChallenges() : undefined
    return await measure(targetOf(rig, service, MARKERS[endpoint], seeded))
  } finally {
    await service.stop()
  }
}

const BARE = new URL('./bare.ts', import.meta.url).pathname

/** Measures the bare server, with the requests that were built last, sent as often as it takes. */
export async function onBare<Result>(
  rig: Rig,
  answerBytes: number,
  measure: (target: Target) => Promise<Result>,
): Promise<Result> {
  const bare = await startChildServer(BARE, [String(answerBytes)])
  try {
    return await measure(targetOf(rig, { port: bare.port, ownPids: [bare.pid], redisPids: [] }, ''))
  } finally {
    await bare.stop()
  }
}

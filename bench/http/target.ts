/** A measured server under one load after another. Each request of a service is sent once: a load goes on where the last one ended. */

import { type Endpoint, MARKERS } from '../../test/harness/load/traffic.ts'
import type { StoreKind } from '../../test/harness/service.ts'
import { ChildServer } from '../child-server.ts'
import { failureOf } from './figures.ts'
import type { LoadProcess } from './load-process.ts'
import type { Options } from './options.ts'
import type { RunResult } from './prebuilt.ts'
import type { Probe } from './probe.ts'
import { startService } from './server.ts'

/** What all measurements of a run share. */
export interface Rig {
  readonly options: Options
  readonly load: LoadProcess
  readonly probe: Probe
}

type Server = Pick<Awaited<ReturnType<typeof startService>>, 'port' | 'ownPids' | 'redisPids'>

export class Target {
  /** Process ids of the server; the first is the worker. */
  readonly pids: readonly number[]
  /** Visitors who have fetched their challenge; only of /verify. */
  readonly seeded: number | undefined
  readonly #load: LoadProcess
  readonly #spec

  /** @param marker what each body must contain; '' for the bare server, which is sent the same requests as often as it takes */
  constructor({ load, options }: Rig, server: Server, marker: string, seeded?: number) {
    const { port, ownPids, redisPids } = server
    const { connections } = options
    this.pids = ownPids
    this.seeded = seeded
    this.#load = load
    const recycles = marker === ''
    this.#spec = { port, connections, recycles, marker, pids: [...ownPids, ...redisPids] }
  }

  load(measureMs: number, warmUpMs = 0): Promise<RunResult> {
    return this.#load.run({ ...this.#spec, visitorsPerSecond: Infinity, warmUpMs, measureMs })
  }

  pace(visitorsPerSecond: number, measureMs: number, warmUpMs = 500): Promise<RunResult> {
    return this.#load.run({ ...this.#spec, visitorsPerSecond, warmUpMs, measureMs })
  }
}

interface Wanted {
  readonly endpoint: Endpoint
  readonly store: StoreKind
  /** Requests to build. */
  readonly count: number
  readonly seedMsMax: number
  readonly env?: Record<string, string>
}

/** Measures a fresh service with requests built for it. For /verify, the store has a record of each visitor, as after its challenge. */
export async function onService<Result>(
  rig: Rig,
  { endpoint, store, count, seedMsMax, env }: Wanted,
  measure: (target: Target) => Promise<Result>,
): Promise<Result> {
  const { connections, direct } = rig.options
  const service = await startService(store, !direct, env)
  try {
    const traffic = { endpoint, count, target: service.target, isForwarded: !direct }
    await rig.load.build(traffic)
    const fetchChallenges = async () => {
      const times = { visitorsPerSecond: Infinity, warmUpMs: 0, measureMs: seedMsMax, pids: [] }
      const spec = { port: service.port, connections, ...times, recycles: false, marker: MARKERS.challenge }
      const result = await rig.load.run(spec, { ...traffic, endpoint: 'challenge' })
      const failure = failureOf(result)
      if (failure !== undefined) throw new Error(failure)
      return result.sent
    }
    // Without the proxy all visitors have one address, whose record the first request makes.
    const seeded = endpoint === 'verify' && !direct ? await fetchChallenges() : undefined
    return await measure(new Target(rig, service, MARKERS[endpoint], seeded))
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
  const bare = await ChildServer.start(BARE, [String(answerBytes)])
  const server = { port: bare.port, ownPids: [bare.pid], redisPids: [] }
  try {
    return await measure(new Target(rig, server, ''))
  } finally {
    await bare.stop()
  }
}

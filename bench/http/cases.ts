/**
 * The cases, each an endpoint on one kind of server, and the measuring of them.
 *
 *   for each repetition, endpoint:
 *     full load, for each store:   fresh server and store -> build requests -> seed (/verify) -> load -> stop
 *                bare server:      after the first store, the same requests, as often as it takes
 *     fixed rates, for each store: inside.ts
 *
 * The ratio to the bare server is taken within a repetition, moments apart, because a shared machine's speed drifts.
 */

import type { LoadProcess } from '../../test/harness/load/load-process.ts'
import { type Endpoint, MARKERS } from '../../test/harness/load/traffic.ts'
import type { StoreKind } from '../../test/harness/service.ts'
import { type Figures, failureOf, figuresOf } from './figures.ts'
import type { Inside, LatencyRun } from './inside.ts'
import type { Options } from './options.ts'
import { type RunningServer, type RunningService, startBareServer, startService } from './server.ts'

export type ServerKind = 'bare' | StoreKind

/** One repetition of one case at full load. */
export interface Run {
  readonly endpoint: Endpoint
  readonly server: ServerKind
  /** undefined if nothing could be measured. */
  readonly figures: Figures | undefined
  /** undefined if every answer was the expected one. */
  readonly failure: string | undefined
  readonly ranOut: boolean
  /** Requests of visitors that should have fetched a challenge, but had not, of all. */
  readonly unseededShare: number
}

export interface BenchListener {
  onRun(run: Run): void
  onLatencyRun(run: LatencyRun): void
}

/** Requests are built for this rate, the most that a case is expected to reach, ... */
const REQUESTS_PER_SECOND_MAX = 100_000
/** ... but no more of them than memory allows. */
const REQUESTS_MAX = 600_000
/** A warm-up that is cut short by requests running out must leave enough of them. */
const REQUESTS_MIN = 20_000
/** Records of addresses live for a minute: the first must still be there when its visitor comes back. */
const SEED_MS_MAX = 45_000
/** A worker that has just started answers more slowly. */
const SEED_START_MS = 1000

export class Bench {
  readonly #options: Options
  readonly #load: LoadProcess
  readonly #listener: BenchListener
  readonly #inside: Inside
  readonly runs: Run[] = []
  readonly latencyRuns: LatencyRun[] = []
  /** Of the service's answers. */
  readonly #answerBytes: Partial<Record<Endpoint, number>> = {}

  /** @param listener told of each run as it ends */
  constructor(options: Options, load: LoadProcess, inside: Inside, listener: BenchListener) {
    this.#options = options
    this.#load = load
    this.#inside = inside
    this.#listener = listener
  }

  /** What was measured is in `runs` and `latencyRuns`, also while it goes on. */
  async runAll(): Promise<void> {
    const { repeat, endpoint: endpoints, store: stores, noLatency } = this.#options
    for (let repetition = 0; repetition < repeat; repetition++) {
      for (const endpoint of endpoints) {
        this.runs.push(...(await this.#runEndpoint(endpoint)))
        for (const store of noLatency ? [] : stores) {
          const measured = await this.#inside.latencies(endpoint, store)
          for (const run of measured) this.#listener.onLatencyRun(run)
          this.latencyRuns.push(...measured)
        }
      }
    }
  }

  async #runEndpoint(endpoint: Endpoint): Promise<Run[]> {
    const { seconds, warmup } = this.#options
    const count = requestCount(seconds + warmup)
    const runs: Run[] = []
    let bare: Run | undefined
    for (const kind of this.#options.store) {
      // Challenges are cheaper than what follows them: as many as will be needed are sent in the same time.
      const msMax = (seconds + warmup) * 1000 + SEED_START_MS
      runs.push(
        await this.#onService(endpoint, kind, count, msMax, server => this.#run(endpoint, kind, server)),
      )
      // After the first store, hence moments apart from the second, too.
      bare ??= await this.#onBare(endpoint, server => this.#run(endpoint, 'bare', server))
    }
    const all = [bare!, ...runs.map(run => comparedWith(bare!, run))]
    for (const run of all) this.#listener.onRun(run)
    return all
  }

  /** Measures on a fresh service, with requests built for it, whose visitors have fetched their challenges. */
  async #onService(
    endpoint: Endpoint,
    kind: StoreKind,
    count: number,
    seedMsMax: number,
    measure: (server: RunningService) => Promise<Attempt>,
  ): Promise<Run> {
    const { direct, noSeed, connections } = this.#options
    const isForwarded = !direct
    const service = await startService(kind, isForwarded)
    const traffic = { endpoint, count, target: service.target, isForwarded }
    const measured = await attempted(async () => {
      await this.#load.build(traffic)
      // All from one address have its record from the first request on.
      if (endpoint !== 'verify' || noSeed || direct) return await measure(service)
      // The store then has a record of each visitor, as it has of real ones. The measured requests themselves are minted.
      const challenges = { ...traffic, endpoint: 'challenge' } as const
      const msMax = Math.min(SEED_MS_MAX, seedMsMax)
      const spec = { port: service.port, connections, msMax, marker: MARKERS.challenge }
      const seeded = await this.#load.sendOnce(challenges, spec)
      const attempt = await measure(service)
      return { ...attempt, unseededShare: Math.max(0, attempt.sent - seeded) / attempt.sent }
    })
    await service.stop()
    return { endpoint, server: kind, ...measured }
  }

  /** Measures on the bare server, with the requests of the service before it. */
  async #onBare(endpoint: Endpoint, measure: (server: RunningServer) => Promise<Attempt>): Promise<Run> {
    const server = await startBareServer(this.#answerBytes[endpoint] ?? 0)
    const measured = await attempted(() => measure(server))
    await server.stop()
    return { endpoint, server: 'bare', ...measured }
  }

  async #run(endpoint: Endpoint, kind: ServerKind, server: RunningServer): Promise<Attempt> {
    const { redisPorts, ownPids } = server
    const result = await this.#load.run({ ...this.#specOf(endpoint, kind, server), redisPorts })
    const { sent, ranOut, answerBytes } = result
    if (kind !== 'bare') this.#answerBytes[endpoint] = Math.round(answerBytes)
    return { figures: figuresOf(result, ownPids.length), failure: failureOf(result), sent, ranOut }
  }

  #specOf(endpoint: Endpoint, kind: ServerKind, { port, ownPids, redisPids }: RunningServer) {
    return {
      port,
      connections: this.#options.connections,
      warmUpMs: this.#options.warmup * 1000,
      measureMs: this.#options.seconds * 1000,
      recycles: kind === 'bare',
      marker: kind === 'bare' ? '' : MARKERS[endpoint],
      pids: [...ownPids, ...redisPids],
    }
  }
}

interface Attempt {
  readonly figures: Figures
  readonly failure: string | undefined
  readonly sent: number
  readonly ranOut: boolean
  readonly unseededShare?: number
}

async function attempted(measure: () => Promise<Attempt>) {
  try {
    const { figures, failure, ranOut, unseededShare = 0 } = await measure()
    return { figures, failure, ranOut, unseededShare }
  } catch (error) {
    return { figures: undefined, failure: (error as Error).message, ranOut: false, unseededShare: 0 }
  }
}

function requestCount(seconds: number): number {
  const count = Math.ceil(seconds * REQUESTS_PER_SECOND_MAX)
  return Math.max(REQUESTS_MIN, Math.min(REQUESTS_MAX, count))
}

function comparedWith(bare: Run, run: Run): Run {
  if (bare.figures === undefined || run.figures === undefined) return run
  const timesBare = run.figures.cpuUs / bare.figures.cpuUs
  return { ...run, figures: { ...run.figures, timesBare } }
}

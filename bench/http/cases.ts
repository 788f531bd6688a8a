/**
 * The cases, each an endpoint on one kind of server, and the measuring of them.
 *
 *   for each repetition, endpoint:
 *     full load, for each store:   fresh server and store -> build requests -> seed (/verify) -> load -> stop
 *                bare server:      after the first store, the same requests, as often as it takes
 *     fixed rate, for each server: the same, at a rate that the slowest of them can keep
 *
 * The ratio to the bare server is taken within a repetition, moments apart, because a shared machine's speed drifts.
 */

import { choices, integer, number, toggle, type Values } from '../../test/harness/command-line.ts'
import type { LoadProcess } from '../../test/harness/load/load-process.ts'
import { ENDPOINTS, type Endpoint, MARKERS } from '../../test/harness/load/traffic.ts'
import { STORE_KINDS, type StoreKind } from '../../test/harness/service.ts'
import { OUTPUT } from '../report/publish.ts'
import { type Figures, failureOf, figuresOf, type LatencyFigures, latencyFiguresOf } from './figures.ts'
import { type RunningServer, type RunningService, startBareServer, startService } from './server.ts'

export const OPTIONS = {
  store: choices(STORE_KINDS, 'Only these stores (redis needs redis-server on the path)'),
  endpoint: choices(ENDPOINTS, 'Only these endpoints'),
  seconds: number(3, 0.1, 60, 'Measured time of a case'),
  warmup: number(3, 0, 60, 'Seconds of load before it: compilation by V8 takes over 1 s'),
  repeat: integer(5, 1, 100, 'Repetitions, each on a fresh server and store'),
  connections: integer(64, 1, 512, 'Each with one request under way'),
  direct: toggle('No X-Forwarded-For: one client address, limits raised.'),
  noSeed: toggle(
    '/verify from addresses new to the store; otherwise each has fetched a challenge, as visitors have.',
  ),
  noLatency: toggle('Full load only.'),
  rate: number(
    undefined,
    1,
    100_000,
    'Requests/s of the fixed rate; without it half of what the slowest server of the endpoint has just reached',
  ),
  ...OUTPUT,
}

export type Options = Values<typeof OPTIONS>

export type ServerKind = 'bare' | StoreKind

/** One repetition of one case, at full load or at a fixed rate. */
export interface RunOf<Measured> {
  readonly endpoint: Endpoint
  readonly server: ServerKind
  /** undefined if nothing could be measured. */
  readonly figures: Measured | undefined
  /** undefined if every answer was the expected one. */
  readonly failure: string | undefined
  readonly ranOut: boolean
  /** Requests of visitors that should have fetched a challenge, but had not, of all. */
  readonly unseededShare: number
}

export type Run = RunOf<Figures>
export type LatencyRun = RunOf<LatencyFigures>

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
/** Of the closed loop's throughput: a service that is busy, with room for what comes unevenly. */
const RATE_SHARE = 0.5
/** Records of addresses live for a minute: the first must still be there when its visitor comes back. */
const SEED_MS_MAX = 45_000
/** A worker that has just started answers more slowly. */
const SEED_START_MS = 1000

export class Bench {
  readonly #options: Options
  readonly #load: LoadProcess
  readonly #listener: BenchListener
  /** Of the service's answers. */
  readonly #answerBytes: Partial<Record<Endpoint, number>> = {}

  /** @param listener told of each run as it ends */
  constructor(options: Options, load: LoadProcess, listener: BenchListener) {
    this.#options = options
    this.#load = load
    this.#listener = listener
  }

  async runAll(): Promise<{ runs: Run[]; latencyRuns: LatencyRun[] }> {
    const runs: Run[] = []
    const latencyRuns: LatencyRun[] = []
    for (let repetition = 0; repetition < this.#options.repeat; repetition++) {
      for (const endpoint of this.#options.endpoint) {
        const measured = await this.#runEndpoint(endpoint)
        runs.push(...measured)
        if (!this.#options.noLatency) {
          latencyRuns.push(...(await this.#paceEndpoint(endpoint, this.#options.rate ?? rateFrom(measured))))
        }
      }
    }
    return { runs, latencyRuns }
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

  async #paceEndpoint(endpoint: Endpoint, rate: number): Promise<LatencyRun[]> {
    const count = Math.ceil(rate * (this.#options.seconds + this.#options.warmup)) + 1
    const runs: LatencyRun[] = []
    for (const kind of this.#options.store) {
      const wanted = Math.min(REQUESTS_MAX, count)
      runs.push(
        await this.#onService(endpoint, kind, wanted, SEED_MS_MAX, server =>
          this.#pace(endpoint, kind, server, rate),
        ),
      )
    }
    const all = [await this.#onBare(endpoint, server => this.#pace(endpoint, 'bare', server, rate)), ...runs]
    for (const run of all) this.#listener.onLatencyRun(run)
    return all
  }

  /** Measures on a fresh service, with requests built for it, whose visitors have fetched their challenges. */
  async #onService<Measured>(
    endpoint: Endpoint,
    kind: StoreKind,
    count: number,
    seedMsMax: number,
    measure: (server: RunningService) => Promise<Attempt<Measured>>,
  ): Promise<RunOf<Measured>> {
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
  async #onBare<Measured>(
    endpoint: Endpoint,
    measure: (server: RunningServer) => Promise<Attempt<Measured>>,
  ): Promise<RunOf<Measured>> {
    const server = await startBareServer(this.#answerBytes[endpoint] ?? 0)
    const measured = await attempted(() => measure(server))
    await server.stop()
    return { endpoint, server: 'bare', ...measured }
  }

  async #run(endpoint: Endpoint, kind: ServerKind, server: RunningServer): Promise<Attempt<Figures>> {
    const { redisPorts, ownPids } = server
    const result = await this.#load.run({ ...this.#specOf(endpoint, kind, server), redisPorts })
    const { sent, ranOut, answerBytes } = result
    if (kind !== 'bare') this.#answerBytes[endpoint] = Math.round(answerBytes)
    return { figures: figuresOf(result, ownPids.length), failure: failureOf(result), sent, ranOut }
  }

  async #pace(
    endpoint: Endpoint,
    kind: ServerKind,
    server: RunningServer,
    ratePerSecond: number,
  ): Promise<Attempt<LatencyFigures>> {
    const result = await this.#load.pace({ ...this.#specOf(endpoint, kind, server), ratePerSecond })
    const { sent, ranOut } = result
    const figures = latencyFiguresOf(result, server.ownPids.length, ratePerSecond)
    return { figures, failure: failureOf(result), sent, ranOut }
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

interface Attempt<Measured> {
  readonly figures: Measured
  readonly failure: string | undefined
  readonly sent: number
  readonly ranOut: boolean
  readonly unseededShare?: number
}

async function attempted<Measured>(measure: () => Promise<Attempt<Measured>>) {
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

/** Half of what the slowest of them reaches; 1 if nothing could be measured. */
function rateFrom(runs: readonly Run[]): number {
  const rates = runs.flatMap(({ figures }) => figures?.requestsPerSecond ?? [])
  return rates.length === 0 ? 1 : Math.max(1, Math.floor(Math.min(...rates) * RATE_SHARE))
}

function comparedWith(bare: Run, run: Run): Run {
  if (bare.figures === undefined || run.figures === undefined) return run
  const timesBare = run.figures.cpuUs / bare.figures.cpuUs
  return { ...run, figures: { ...run.figures, timesBare } }
}

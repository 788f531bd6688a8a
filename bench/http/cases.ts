/**
 * The cases, each an endpoint on one kind of server, and the measuring of them.
 *
 *   for each repetition, endpoint:
 *     for each store:   fresh server and store -> build requests -> load -> stop
 *     bare server:      the same requests, as often as it takes
 *
 * The ratio to the bare server is taken within a repetition, moments apart, because a shared machine's speed drifts.
 */

import type { StoreKind } from '../../test/support/service.ts'
import type { LoadResult } from './load.ts'
import type { LoadProcess } from './load-process.ts'
import type { Options } from './options.ts'
import { type RunningServer, startBare, startService } from './server.ts'
import type { Endpoint } from './traffic.ts'

export type ServerKind = 'bare' | StoreKind

/** One repetition of one case. */
export interface Run {
  readonly endpoint: Endpoint
  readonly server: ServerKind
  /** undefined if nothing could be measured. */
  readonly figures: Figures | undefined
  /** undefined if every answer was the expected one. */
  readonly failure: string | undefined
  readonly ranOut: boolean
}

export interface Figures {
  readonly requests: number
  readonly requestsPerSecond: number
  readonly workerUs: number
  /** Only with Redis. */
  readonly redisUs?: number
  /** Worker CPU against the bare server's; not of the bare server itself. */
  readonly timesBare?: number
  /** CPU time over measured time. */
  readonly workerBusy: number
  readonly generatorBusy: number
  /** Of everything else on the machine; 1 is a whole core. */
  readonly othersBusy: number
  readonly latencyP50Ms: number
  readonly latencyP99Ms: number
  readonly workerMibBefore: number
  readonly workerMibAfter: number
  readonly redisMibBefore?: number
  readonly redisMibAfter?: number
}

/** Requests are built for this rate, the most that a case is expected to reach, ... */
const REQUESTS_PER_SECOND_MAX = 100_000
/** ... but no more of them than memory allows. */
const REQUESTS_MAX = 600_000
/** A warm-up that is cut short by requests running out must leave enough of them. */
const REQUESTS_MIN = 20_000

/** What a body must contain to be of the expected kind; with status 200 a failed verification is one too. */
const MARKERS: Readonly<Record<Endpoint, string>> = {
  challenge: '"nonce":"',
  verify: '"passed":true',
  'verify-token': '"success":true',
}

export class Bench {
  readonly #options: Options
  readonly #load: LoadProcess
  readonly #onRun: (run: Run) => void
  #server: Promise<RunningServer> | undefined
  #isStopped = false

  /** @param onRun told of each run as it ends */
  constructor(options: Options, load: LoadProcess, onRun: (run: Run) => void) {
    this.#options = options
    this.#load = load
    this.#onRun = onRun
  }

  async runAll(): Promise<Run[]> {
    const runs: Run[] = []
    for (let repetition = 0; repetition < this.#options.repeat; repetition++) {
      for (const endpoint of this.#options.endpoints) runs.push(...(await this.#runEndpoint(endpoint)))
    }
    return runs
  }

  /** Ends the server that runs or starts now; no other will be started. */
  async stop(): Promise<void> {
    this.#isStopped = true
    await this.#stopServer()
  }

  async #stopServer(): Promise<void> {
    const server = this.#server
    this.#server = undefined
    await (await server)?.stop()
  }

  async #start<Server extends RunningServer>(start: () => Promise<Server>): Promise<Server> {
    if (this.#isStopped) throw new Error('the bench was stopped')
    const starting = start()
    this.#server = starting
    try {
      return await starting
    } catch (error) {
      this.#server = undefined
      throw error
    }
  }

  async #runEndpoint(endpoint: Endpoint): Promise<Run[]> {
    const runs: Run[] = []
    let bodyBytes = 0
    for (const kind of this.#options.stores) {
      const service = await this.#start(() => startService(kind, this.#options.isForwarded))
      bodyBytes = service.bodyBytes[endpoint]
      const count = this.#requestCount()
      const { target } = service
      await this.#load.build({ endpoint, count, target, isForwarded: this.#options.isForwarded })
      runs.push(await this.#run(endpoint, kind, service))
      await this.#stopServer()
    }
    const bare = await this.#run(endpoint, 'bare', await this.#start(() => startBare(bodyBytes)))
    await this.#stopServer()
    const all = [bare, ...runs.map(run => comparedWith(bare, run))]
    for (const run of all) this.#onRun(run)
    return all
  }

  #requestCount(): number {
    const seconds = this.#options.seconds + this.#options.warmUpSeconds
    const count = Math.ceil(seconds * REQUESTS_PER_SECOND_MAX)
    return Math.max(REQUESTS_MIN, Math.min(REQUESTS_MAX, count))
  }

  async #run(endpoint: Endpoint, kind: ServerKind, server: RunningServer): Promise<Run> {
    const { workerPid, redisPid } = server
    try {
      const result = await this.#load.run({
        port: server.port,
        connections: this.#options.connections,
        warmUpMs: this.#options.warmUpSeconds * 1000,
        measureMs: this.#options.seconds * 1000,
        recycles: kind === 'bare',
        marker: kind === 'bare' ? '' : MARKERS[endpoint],
        pids: redisPid === undefined ? [workerPid] : [workerPid, redisPid],
      })
      const { ranOut } = result
      return { endpoint, server: kind, figures: figuresOf(result), failure: failureOf(result), ranOut }
    } catch (error) {
      const failure = (error as Error).message
      return { endpoint, server: kind, figures: undefined, failure, ranOut: false }
    }
  }
}

const MEBIBYTE = 2 ** 20

function figuresOf(result: LoadResult): Figures {
  const { answers, measuredMs } = result
  const [worker, redis] = result.usages
  return {
    requests: answers,
    requestsPerSecond: (answers / measuredMs) * 1000,
    workerUs: (worker!.cpuMs / answers) * 1000,
    workerBusy: worker!.cpuMs / measuredMs,
    generatorBusy: result.generatorBusy,
    othersBusy: result.othersBusy,
    latencyP50Ms: result.latencyP50Ms,
    latencyP99Ms: result.latencyP99Ms,
    workerMibBefore: worker!.residentBytesBefore / MEBIBYTE,
    workerMibAfter: worker!.residentBytesAfter / MEBIBYTE,
    ...(redis !== undefined && {
      redisUs: (redis.cpuMs / answers) * 1000,
      redisMibBefore: redis.residentBytesBefore / MEBIBYTE,
      redisMibAfter: redis.residentBytesAfter / MEBIBYTE,
    }),
  }
}

function failureOf({ badAnswers, badAnswer }: LoadResult): string | undefined {
  return badAnswers === 0
    ? undefined
    : `${badAnswers} answers were not the expected one; the first: ${badAnswer.replaceAll('\r\n', ' | ')}`
}

function comparedWith(bare: Run, run: Run): Run {
  if (bare.figures === undefined || run.figures === undefined) return run
  const timesBare = run.figures.workerUs / bare.figures.workerUs
  return { ...run, figures: { ...run.figures, timesBare } }
}

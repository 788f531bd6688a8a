/**
 * Runs that look into the worker: latencies at fixed rates, with what held the event loop up, and CPU profiles.
 *
 * A rate is a share of the worker: the one at which it is 25, 50 or 75 % busy. A request costs less the more of them come at once
 * (75 us at full load, 130 at a tenth of it), so a share of the full rate would say little. Short runs find the rate.
 *
 *   for each endpoint, store:  fresh service -> build requests -> seed -> warm up -> for each share: find the rate, measure
 *                              bare server: the same rates
 */

import type { LoadProcess } from '../../test/harness/load/load-process.ts'
import type { PacedResult } from '../../test/harness/load/loops.ts'
import { type Endpoint, MARKERS } from '../../test/harness/load/traffic.ts'
import type { StoreKind } from '../../test/harness/service.ts'
import { failureOf, type LatencyFigures, latencyFiguresOf } from './figures.ts'
import type { Options } from './options.ts'
import { type Look, Probe } from './probe.ts'
import { type ProfileReport, profileReport } from './profile.ts'
import { type RunningServer, type RunningService, startBareServer, startService } from './server.ts'

/** One repetition of one case. */
export interface LatencyRun {
  readonly endpoint: Endpoint
  readonly server: StoreKind
  /** The share of the worker that was asked for, in per cent; undefined if a rate was. */
  readonly busy: number | undefined
  readonly figures: LatencyFigures
  /** undefined if every answer was the expected one. */
  readonly failure: string | undefined
}

const WARM_UP_MS = 1500
const PILOT_MS = 1000
const PILOTS_MAX = 4
/** Near enough to the share that was asked for. */
const SHARE_OFF_MAX = 0.08
/** Requests of the warm-up, and a second of a worker that does nothing else: more than any machine takes. */
const [WARM_UP_REQUESTS, REQUESTS_A_BUSY_SECOND] = [90_000, 18_000]
/** Records of addresses live for a minute: the first must still be there when its visitor comes back. */
const SEED_MS_MAX = 30_000

export class Inside {
  readonly #options: Options
  readonly #load: LoadProcess
  readonly #probe = new Probe()

  constructor(options: Options, load: LoadProcess) {
    this.#options = options
    this.#load = load
  }

  /** At all shares, or at the rate that was given. */
  async latencies(endpoint: Endpoint, kind: StoreKind): Promise<LatencyRun[]> {
    const { rate, busy, seconds } = this.#options
    const shares = rate === undefined ? busy.map(Number) : [undefined]
    const sum = shares.reduce<number>((total, share = 100) => total + share / 100, 0)
    const paced = sum * (seconds + PILOTS_MAX * 1.5) * REQUESTS_A_BUSY_SECOND
    const count = WARM_UP_REQUESTS + (rate === undefined ? paced : rate * (seconds + 2))
    const rates: number[] = []
    const looks: Look[] = []
    const results: PacedResult[] = []
    let answerBytes = 0
    const isMeasured = await this.#onService(endpoint, kind, Math.ceil(count), async (service, run) => {
      answerBytes = run.answerBytes
      let cost = run.workerMs / run.answers
      for (const share of shares) {
        const found = share === undefined ? rate! : await run.rateFor(share / 100, cost)
        rates.push(found)
        await this.#probe.start(service.workerPids[0]!)
        const result = await run.pace(found, seconds * 1000)
        looks.push(await this.#probe.stop(service.workerPids[0]!))
        results.push(result)
        cost = result.usages[0]!.cpuMs / result.requests
      }
    })
    const bare = isMeasured === undefined ? await this.#onBare(endpoint, rates, answerBytes) : []
    return results.map((result, index) => ({
      endpoint,
      server: kind,
      busy: shares[index],
      figures: latencyFiguresOf(result, rates[index]!, looks[index]!, bare[index]!),
      failure: isMeasured ?? failureOf(result),
    }))
  }

  /** A closed loop, which keeps the worker busy. */
  async profile(endpoint: Endpoint, kind: StoreKind): Promise<ProfileReport> {
    const { seconds } = this.#options
    const count = WARM_UP_REQUESTS + seconds * 2 * REQUESTS_A_BUSY_SECOND
    let report: ProfileReport | undefined
    const problem = await this.#onService(endpoint, kind, count, async (service, run) => {
      const [worker] = service.workerPids
      await this.#probe.start(worker!, true)
      await run.load(seconds * 1000)
      const { profile } = await this.#probe.stop(worker!)
      report = profileReport(`${endpoint} ${kind}`, profile!)
    })
    if (report === undefined) throw new Error(`${endpoint} on ${kind}: ${problem}`)
    return report
  }

  stop(): void {
    this.#probe.remove()
  }

  /** On a warm service whose visitors have fetched their challenges. @returns what went wrong */
  async #onService(
    endpoint: Endpoint,
    kind: StoreKind,
    count: number,
    measure: (service: RunningService, run: WarmRun) => Promise<void>,
  ): Promise<string | undefined> {
    const { direct, noSeed, connections } = this.#options
    const service = await startService(kind, !direct, this.#probe.env)
    try {
      const traffic = { endpoint, count, target: service.target, isForwarded: !direct }
      await this.#load.build(traffic)
      const { port } = service
      if (endpoint === 'verify' && !noSeed && !direct) {
        const to = { port, connections, msMax: SEED_MS_MAX, marker: MARKERS.challenge }
        await this.#load.sendOnce({ ...traffic, endpoint: 'challenge' }, to)
      }
      const run = new WarmRun(this.#load, connections, service, MARKERS[endpoint])
      await run.load(WARM_UP_MS)
      await measure(service, run)
      return undefined
    } catch (error) {
      return (error as Error).message
    } finally {
      await service.stop()
    }
  }

  /** The bare server at the same rates. */
  async #onBare(endpoint: Endpoint, rates: readonly number[], answerBytes: number): Promise<PacedResult[]> {
    const server = await startBareServer(answerBytes)
    try {
      const run = new WarmRun(this.#load, this.#options.connections, server, '')
      await run.load(WARM_UP_MS)
      const results: PacedResult[] = []
      for (const rate of rates) results.push(await run.pace(rate, this.#options.seconds * 1000))
      return results
    } catch (error) {
      throw new Error(`the bare server at the rates of /${endpoint}: ${(error as Error).message}`)
    } finally {
      await server.stop()
    }
  }
}

/** A server under one load after another. Requests go on where the last ones ended, as each counts once. */
class WarmRun {
  answers = 0
  answerBytes = 0
  workerMs = 0
  #sent = 0
  readonly #load: LoadProcess
  readonly #spec

  constructor(
    load: LoadProcess,
    connections: number,
    { port, ownPids, redisPids }: RunningServer,
    marker: string,
  ) {
    this.#load = load
    const recycles = marker === ''
    this.#spec = { port, connections, recycles, marker, pids: [...ownPids, ...redisPids] }
  }

  async load(ms: number): Promise<void> {
    const spec = { ...this.#spec, warmUpMs: 0, measureMs: ms, firstRequest: this.#sent }
    const result = await this.#load.run(spec)
    this.#sent += this.#spec.recycles ? 0 : result.sent
    this.answers = result.answers
    this.answerBytes = Math.round(result.answerBytes)
    this.workerMs = result.usages[0]!.cpuMs
  }

  async pace(ratePerSecond: number, ms: number, warmUpMs = 500): Promise<PacedResult> {
    const spec = { ...this.#spec, warmUpMs, measureMs: ms, firstRequest: this.#sent, ratePerSecond }
    const result = await this.#load.pace(spec)
    this.#sent += this.#spec.recycles ? 0 : result.sent
    return result
  }

  /** The rate at which the worker is so busy. @param costMs of a request, as last measured */
  async rateFor(share: number, costMs: number): Promise<number> {
    let rate = Math.max(1, (share * 1000) / costMs)
    for (let pilot = 0; pilot < PILOTS_MAX; pilot++) {
      const { usages, measuredMs } = await this.pace(rate, PILOT_MS, PILOT_MS / 4)
      const busy = usages[0]!.cpuMs / measuredMs
      if (Math.abs(busy / share - 1) <= SHARE_OFF_MAX) break
      rate = Math.max(1, rate * (share / busy))
    }
    return Math.round(rate)
  }
}

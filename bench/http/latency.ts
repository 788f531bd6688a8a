/**
 * Runs that look into the worker: latencies at fixed rates, with what held the event loop up, and CPU profiles.
 *
 * A rate is a share of the worker: the one at which it is 25, 50 or 75 % busy. A request costs less the more of them come at once
 * (75 us at full load, 130 at a tenth of it), so a share of the full rate would say little. Short runs, the pilots, find the rate.
 *
 *   fresh service -> build requests -> seed -> warm up -> for each share: find the rate by pilots, measure
 *   bare server:     the same rates
 */

import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { StoreKind } from '../../test/harness/service.ts'
import { latencyFiguresOf, type Run } from './figures.ts'
import type { RunResult } from './prebuilt.ts'
import type { Look } from './probe.ts'
import { onBare, onService, RATE_WARM_UP_MS, type Rig, type Target } from './target.ts'
import type { Endpoint } from './traffic.ts'

/** A warm-up takes as long as --warmup says, a pilot as long as --seconds, but each at least SPAN_MS_MIN and at most its own maximum. */
const SPAN_MS_MIN = 300
const WARM_UP_MS_MAX = 1500
const PILOT_MS_MAX = 1000
const PILOTS_MAX = 4
/** Before each pilot, in parts of its time. */
const PILOT_WARM_UP = 0.25
/** A rate is found when the worker is as busy as wanted, within this share of it. */
const SHARE_OFF_MAX = 0.08
/** How many requests to build for a second of warm-up: more than the service can take. */
const REQUESTS_A_WARM_UP_SECOND = 60_000
/** How many to build for a second that keeps the worker busy. No pilot's rate is higher, so that none uses up the requests of those after it. */
const REQUESTS_A_BUSY_SECOND = 18_000

const spanMs = (seconds: number, mostMs: number) => Math.min(mostMs, Math.max(SPAN_MS_MIN, seconds * 1000))
const warmUpMsOf = ({ options }: Rig) => spanMs(options.warmup, WARM_UP_MS_MAX)

/** Measures at each rate that `--busy` asks for. */
export async function latencies(rig: Rig, endpoint: Endpoint, store: StoreKind): Promise<Run[]> {
  const percents = rig.options.busy.map(Number)
  const measureMs = rig.options.seconds * 1000
  try {
    const { answerBytes, measured } = await measureShares(rig, endpoint, store, percents)
    return await onBare(rig, answerBytes, async target => {
      await target.closedLoop(warmUpMsOf(rig))
      const runs: Run[] = []
      for (const { busy, rate, look, result } of measured) {
        const bare = await target.atRate(rate, measureMs)
        runs.push({ endpoint, server: store, busy, figures: latencyFiguresOf(result, rate, look, bare) })
      }
      return runs
    })
  } catch (error) {
    const failure = (error as Error).message
    return percents.map(busy => ({ endpoint, server: store, busy, failure })) // one service, and one bare server, for all rates
  }
}

function measureShares(rig: Rig, endpoint: Endpoint, store: StoreKind, percents: readonly number[]) {
  const { seconds } = rig.options
  const sum = percents.reduce((total, busy) => total + busy / 100, 0)
  const pilotMs = spanMs(seconds, PILOT_MS_MAX)
  const pilotsMs = PILOTS_MAX * (1 + PILOT_WARM_UP) * pilotMs
  const count = sum * (seconds + (RATE_WARM_UP_MS + pilotsMs) / 1000) * REQUESTS_A_BUSY_SECOND
  return onWarmService(rig, endpoint, store, count, async (target, warm) => {
    const { workerPid } = target
    const measured: { busy: number; rate: number; look: Look; result: RunResult }[] = []
    let costMs = warm.usages[0]!.cpuMs / warm.answers // of a request, as last measured
    for (const busy of percents) {
      const rate = await rateFor(target, busy / 100, costMs, pilotMs)
      await rig.probe.start(workerPid)
      const result = await target.atRate(rate, seconds * 1000)
      measured.push({ busy, rate, look: await rig.probe.stop(workerPid), result })
      costMs = result.usages[0]!.cpuMs / result.answers
    }
    return { answerBytes: Math.round(warm.answerBytes), measured }
  })
}

/** The folder of CPU profiles, which Git ignores. */
const PROFILES = fileURLToPath(new URL('../dist/profiles/', import.meta.url))

/** Profiles the worker in a closed loop, which keeps it busy. @returns the file, as DevTools and speedscope read it */
export function profile(rig: Rig, endpoint: Endpoint, store: StoreKind): Promise<string> {
  const { seconds } = rig.options
  const file = join(PROFILES, `${endpoint}-${store}.cpuprofile`)
  mkdirSync(PROFILES, { recursive: true })
  return onWarmService(rig, endpoint, store, seconds * 2 * REQUESTS_A_BUSY_SECOND, async target => {
    await rig.probe.profile(target.workerPid)
    await target.closedLoop(seconds * 1000)
    writeFileSync(file, JSON.stringify((await rig.probe.stop(target.workerPid)).profile))
    return file
  })
}

/** @param count of requests after the warm-up */
function onWarmService<Result>(
  rig: Rig,
  endpoint: Endpoint,
  store: StoreKind,
  count: number,
  measure: (target: Target, warm: RunResult) => Promise<Result>,
): Promise<Result> {
  const warmUpMs = warmUpMsOf(rig)
  const requests = Math.ceil((warmUpMs / 1000) * REQUESTS_A_WARM_UP_SECOND + count)
  const wanted = { endpoint, store, count: requests, env: rig.probe.env }
  return onService(rig, wanted, async target => measure(target, await target.closedLoop(warmUpMs)))
}

/** The rate at which the worker is busy for this share of the time; the last correction is not tried. @param costMs CPU time of a request, as last measured */
async function rateFor(target: Target, share: number, costMs: number, pilotMs: number): Promise<number> {
  // CPU time comes in ticks of 10 ms. A short run on a busy machine may have none, which would ask for an endless rate.
  const within = (perSecond: number) => Math.max(1, Math.min(perSecond, share * REQUESTS_A_BUSY_SECOND))
  let rate = within((share * 1000) / costMs)
  for (let pilot = 0; pilot < PILOTS_MAX; pilot++) {
    const { usages, measuredMs } = await target.atRate(rate, pilotMs, pilotMs * PILOT_WARM_UP)
    const busy = usages[0]!.cpuMs / measuredMs
    if (Math.abs(busy / share - 1) <= SHARE_OFF_MAX) break
    rate = within(rate * (share / busy))
  }
  return Math.round(rate)
}

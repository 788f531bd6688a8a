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
import { onBare, onService, type Rig, type Target } from './target.ts'
import type { Endpoint } from './traffic.ts'

/** A warm-up takes as long as --warmup says, a pilot as long as --seconds, but each at least the first of these and its own most. */
const [SHORTEST_MS, WARM_UP_MS_MAX, PILOT_MS_MAX] = [300, 1500, 1000]
const PILOTS_MAX = 4
/** A rate is found when the worker is as busy as wanted, within this share of it. */
const SHARE_OFF_MAX = 0.08
/** How many requests to build for a second of warm-up, and for a second at a rate that keeps the worker busy: more than it takes. */
const [REQUESTS_A_WARM_UP_SECOND, REQUESTS_A_BUSY_SECOND] = [60_000, 18_000]

const spanMs = (seconds: number, mostMs: number) => Math.min(mostMs, Math.max(SHORTEST_MS, seconds * 1000))
const warmUpMsOf = ({ options }: Rig) => spanMs(options.warmup, WARM_UP_MS_MAX)

/** Measures at each rate that `--busy` asks for. */
export async function latencies(rig: Rig, endpoint: Endpoint, store: StoreKind): Promise<Run[]> {
  const percents = rig.options.busy.map(Number)
  const measureMs = rig.options.seconds * 1000
  try {
    const { answerBytes, measured } = await measureShares(rig, endpoint, store, percents)
    return await onBare(rig, answerBytes, async target => {
      await target.load(warmUpMsOf(rig))
      const runs: Run[] = []
      for (const { busy, rate, look, result } of measured) {
        const bare = await target.pace(rate, measureMs)
        runs.push({ endpoint, server: store, busy, figures: latencyFiguresOf(result, rate, look, bare) })
      }
      return runs
    })
  } catch (error) {
    return [{ endpoint, server: store, busy: percents[0], failure: (error as Error).message }]
  }
}

function measureShares(rig: Rig, endpoint: Endpoint, store: StoreKind, percents: readonly number[]) {
  const { seconds } = rig.options
  const sum = percents.reduce((total, busy) => total + busy / 100, 0)
  const pilotMs = spanMs(seconds, PILOT_MS_MAX)
  // Each measurement is warmed up for half a second (Target.pace), each pilot for a quarter of its time.
  const count = sum * (seconds + 0.5 + (PILOTS_MAX * 1.25 * pilotMs) / 1000) * REQUESTS_A_BUSY_SECOND
  return onWarmService(rig, endpoint, store, count, async (target, warm) => {
    const worker = target.pids[0]!
    const measured: { busy: number; rate: number; look: Look; result: RunResult }[] = []
    let costMs = warm.usages[0]!.cpuMs / warm.answers // of a request, as last measured
    for (const busy of percents) {
      const rate = await rateFor(target, busy / 100, costMs, pilotMs)
      await rig.probe.ask(worker, 'start')
      const result = await target.pace(rate, seconds * 1000)
      measured.push({ busy, rate, look: await rig.probe.ask(worker, 'stop'), result })
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
    const worker = target.pids[0]!
    await rig.probe.ask(worker, 'profile')
    await target.load(seconds * 1000)
    writeFileSync(file, JSON.stringify((await rig.probe.ask(worker, 'stop')).profile))
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
  return onService(rig, wanted, async target => measure(target, await target.load(warmUpMs)))
}

/** The rate at which the worker is busy for this share of the time. @param costMs CPU time of a request, as last measured */
async function rateFor(target: Target, share: number, costMs: number, pilotMs: number): Promise<number> {
  // CPU time comes in ticks of 10 ms. A short run on a busy machine may have none, which would ask for an endless rate.
  const within = (perSecond: number) => Math.max(1, Math.min(perSecond, share * REQUESTS_A_BUSY_SECOND))
  let rate = within((share * 1000) / costMs)
  for (let pilot = 0; pilot < PILOTS_MAX; pilot++) {
    const { usages, measuredMs } = await target.pace(rate, pilotMs, pilotMs / 4)
    const busy = usages[0]!.cpuMs / measuredMs
    if (Math.abs(busy / share - 1) <= SHARE_OFF_MAX) break
    rate = within(rate * (share / busy))
  }
  return Math.round(rate)
}

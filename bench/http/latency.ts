/**
 * Runs that look into the worker: latencies at fixed rates, with what held the event loop up, and CPU profiles.
 *
 * A rate is a share of the worker: the one at which it is 25, 50 or 75 % busy. A request costs less the more of them come at once
 * (75 us at full load, 130 at a tenth of it), so a share of the full rate would say little. Short runs find the rate.
 *
 *   fresh service -> build requests -> seed -> warm up -> for each share: find the rate, measure
 *   bare server:     the same rates
 */

import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Endpoint } from '../../test/harness/load/traffic.ts'
import type { StoreKind } from '../../test/harness/service.ts'
import { failureOf, type LatencyRun, latencyFiguresOf } from './figures.ts'
import type { RunResult } from './prebuilt.ts'
import type { Look } from './probe.ts'
import { onBare, onService, type Rig, type Target } from './target.ts'

const WARM_UP_MS = 1500
const PILOT_MS = 1000
const PILOTS_MAX = 4
/** Near enough to the share that was asked for. */
const SHARE_OFF_MAX = 0.08
/** Requests of the warm-up, and a second of a worker that does nothing else: more than any machine takes. */
const [WARM_UP_REQUESTS, REQUESTS_A_BUSY_SECOND] = [90_000, 18_000]
/** Records of addresses live for a minute: the first must still be there when its visitor comes back. */
const SEED_MS_MAX = 30_000

/** Measures at all shares, or at the rate that was given. */
export async function latencies(rig: Rig, endpoint: Endpoint, store: StoreKind): Promise<LatencyRun[]> {
  const { rate, busy, seconds } = rig.options
  const shares = rate === undefined ? busy.map(Number) : [undefined]
  try {
    const { answerBytes, measured } = await measureShares(rig, endpoint, store, shares)
    const bare = await onBare(rig, answerBytes, async target => {
      await target.load(WARM_UP_MS)
      const results: RunResult[] = []
      for (const { rate: found } of measured) results.push(await target.pace(found, seconds * 1000))
      return results
    })
    return measured.map(({ share, rate: found, look, result }, index) => ({
      endpoint,
      server: store,
      busy: share,
      figures: latencyFiguresOf(result, found, look, bare[index]!),
      failure: failureOf(result),
    }))
  } catch (error) {
    const failure = (error as Error).message
    return [{ endpoint, server: store, busy: shares[0], figures: undefined, failure }]
  }
}

function measureShares(
  rig: Rig,
  endpoint: Endpoint,
  store: StoreKind,
  shares: readonly (number | undefined)[],
) {
  const { rate, seconds } = rig.options
  const sum = shares.reduce<number>((total, share = 100) => total + share / 100, 0)
  const busySeconds = sum * (seconds + PILOTS_MAX * 1.5)
  const count = rate === undefined ? busySeconds * REQUESTS_A_BUSY_SECOND : rate * (seconds + 2)
  return onWarmService(rig, endpoint, store, count, async (target, warm) => {
    const [worker] = target.pids
    const measured: { share: number | undefined; rate: number; look: Look; result: RunResult }[] = []
    let costMs = warm.usages[0]!.cpuMs / warm.answers
    for (const share of shares) {
      const found = share === undefined ? rate! : await rateFor(target, share / 100, costMs)
      await rig.probe.start(worker!)
      const result = await target.pace(found, seconds * 1000)
      measured.push({ share, rate: found, look: await rig.probe.stop(worker!), result })
      costMs = result.usages[0]!.cpuMs / result.answers
    }
    return { answerBytes: Math.round(warm.answerBytes), measured }
  })
}

/** Git ignores it. */
const PROFILES = fileURLToPath(new URL('../dist/profiles/', import.meta.url))

/** Profiles the worker in a closed loop, which keeps it busy. @returns the file, as DevTools and speedscope read it */
export function profile(rig: Rig, endpoint: Endpoint, store: StoreKind): Promise<string> {
  const { seconds } = rig.options
  const file = join(PROFILES, `${endpoint}-${store}.cpuprofile`)
  mkdirSync(PROFILES, { recursive: true })
  return onWarmService(rig, endpoint, store, seconds * 2 * REQUESTS_A_BUSY_SECOND, async target => {
    const [worker] = target.pids
    await rig.probe.start(worker!, true)
    await target.load(seconds * 1000)
    writeFileSync(file, JSON.stringify((await rig.probe.stop(worker!)).profile))
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
  const requests = Math.ceil(WARM_UP_REQUESTS + count)
  const wanted = { endpoint, store, count: requests, seedMsMax: SEED_MS_MAX, env: rig.probe.env }
  return onService(rig, wanted, async target => measure(target, await target.load(WARM_UP_MS)))
}

/** The rate at which the worker is so busy. @param costMs of a request, as last measured */
async function rateFor(target: Target, share: number, costMs: number): Promise<number> {
  let rate = Math.max(1, (share * 1000) / costMs)
  for (let pilot = 0; pilot < PILOTS_MAX; pilot++) {
    const { usages, measuredMs } = await target.pace(rate, PILOT_MS, PILOT_MS / 4)
    const busy = usages[0]!.cpuMs / measuredMs
    if (Math.abs(busy / share - 1) <= SHARE_OFF_MAX) break
    rate = Math.max(1, rate * (share / busy))
  }
  return Math.round(rate)
}

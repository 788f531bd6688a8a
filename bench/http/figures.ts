/** Computes the figures of one run from what the load generator measured. */

import { constants } from 'node:perf_hooks'
import type { StoreKind } from '../../test/harness/service.ts'
import type { RunResult } from './prebuilt.ts'
import type { Look } from './probe.ts'
import type { Endpoint } from './traffic.ts'

/** Figures of the closed loop, at full load; CPU times are of one request. `timesBare`: `cpuUs` over the bare server's. */
export type Figures = ReturnType<typeof figuresOf> & { readonly timesBare?: number }
/** Figures of the open loop, at a fixed rate. */
type LatencyFigures = ReturnType<typeof latencyFiguresOf>
export type AnyFigures = Partial<Figures & LatencyFigures>

/** One repetition of one case. */
export interface Run<Measured extends AnyFigures = AnyFigures> {
  readonly endpoint: Endpoint
  readonly server: 'bare' | StoreKind
  /** How busy the worker was to be, in per cent; undefined at full load. */
  readonly busy?: number | undefined
  /** Either what was measured, or why nothing could be. */
  readonly figures?: Measured
  readonly failure?: string
  readonly notes?: readonly string[]
}

/** @param ownCount how many of the result's processes are the server's own, the worker first; Redis follows if it is the store */
export function figuresOf(result: RunResult, ownCount: number) {
  const { answers, measuredMs, usages, answerBytes, othersBusy, latencies } = result
  const [worker, redis] = [usages[0]!, usages[ownCount]]
  const ownMs = usages.slice(0, ownCount).reduce((sum, { cpuMs }) => sum + cpuMs, 0)
  return {
    requestsPerSecond: (answers / measuredMs) * 1000,
    cpuUs: (ownMs / answers) * 1000,
    answerBytes,
    workerBusy: worker.cpuMs / measuredMs,
    othersBusy,
    latencyP50Ms: latencies.p50Ms,
    latencyP99Ms: latencies.p99Ms,
    ...(redis !== undefined && { redisUs: (redis.cpuMs / answers) * 1000 }),
  }
}

/** @param bare the bare server at the same rate: what the machine and the generator do to any server */
export function latencyFiguresOf(result: RunResult, wantedPerSecond: number, look: Look, bare: RunResult) {
  const { garbageCollections, delayMs } = look
  const { answers, measuredMs, ownLateP99Ms: generatorLateP99Ms, othersBusy, latencies } = result
  const collectionsPerSecond = (ofKind: number) =>
    (garbageCollections.filter(({ kind }) => kind === ofKind).length / measuredMs) * 1000
  return {
    requests: answers,
    wantedPerSecond,
    latencyP50Ms: latencies.p50Ms,
    latencyP99Ms: latencies.p99Ms,
    latencyP999Ms: latencies.p999Ms,
    latencyMaxMs: latencies.maxMs,
    bareP99Ms: bare.latencies.p99Ms,
    bareMaxMs: bare.latencies.maxMs,
    generatorLateP99Ms,
    loopDelayP99Ms: delayMs.p99,
    loopDelayMaxMs: delayMs.max,
    minorCollectionsPerSecond: collectionsPerSecond(constants.NODE_PERFORMANCE_GC_MINOR),
    majorCollectionsPerSecond: collectionsPerSecond(constants.NODE_PERFORMANCE_GC_MAJOR),
    longestCollectionMs: Math.max(0, ...garbageCollections.map(({ ms }) => ms)), // of any kind
    workerBusy: result.usages[0]!.cpuMs / measuredMs,
    othersBusy,
  }
}

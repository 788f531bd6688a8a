/** Computes the figures of one run from what the load generator measured. */

import { constants } from 'node:perf_hooks'
import type { Endpoint } from '../../test/harness/load/traffic.ts'
import type { StoreKind } from '../../test/harness/service.ts'
import type { RunResult } from './prebuilt.ts'
import type { Look } from './probe.ts'

/** Figures of the closed loop, at full load. `timesBare`: `cpuUs` against the bare server's. */
export type Figures = ReturnType<typeof figuresOf> & { readonly timesBare?: number }
export type LatencyFigures = ReturnType<typeof latencyFiguresOf>

/** One repetition of one case. */
interface RunOf<Measured> {
  readonly endpoint: Endpoint
  readonly server: 'bare' | StoreKind
  /** undefined if nothing could be measured. */
  readonly figures: Measured | undefined
  /** undefined if every answer was the expected one. */
  readonly failure: string | undefined
}

export type Run = RunOf<Figures> & { readonly notes: readonly string[] }
/** @property busy the share of the worker that was asked for, in per cent; undefined if a rate was */
export type LatencyRun = RunOf<LatencyFigures> & { readonly busy: number | undefined }

const MEBIBYTE = 2 ** 20

/** @param result its processes are the `own` of the server, the worker first, and Redis if there is one */
export function figuresOf(result: RunResult, own: number) {
  const { answers, measuredMs, usages, answerBytes, generatorBusy, othersBusy } = result
  const { p50Ms: latencyP50Ms, p99Ms: latencyP99Ms } = result.latencies
  const [worker, redis] = [usages[0]!, usages[own]]
  const ownMs = usages.slice(0, own).reduce((sum, { cpuMs }) => sum + cpuMs, 0)
  return {
    requests: answers,
    requestsPerSecond: (answers / measuredMs) * 1000,
    cpuUs: (ownMs / answers) * 1000,
    answerBytes,
    workerBusy: worker.cpuMs / measuredMs,
    generatorBusy,
    othersBusy,
    latencyP50Ms,
    latencyP99Ms,
    workerMibBefore: worker.residentBytesBefore / MEBIBYTE,
    workerMibAfter: worker.residentBytesAfter / MEBIBYTE,
    ...(redis !== undefined && { redisUs: (redis.cpuMs / answers) * 1000 }),
  }
}

/** @param bare the bare server at the same rate: what the machine and the generator do to any server */
export function latencyFiguresOf(
  result: RunResult,
  wantedPerSecond: number,
  { collections, delayMs }: Look,
  bare: RunResult,
) {
  const { answers, measuredMs, ownLateP99Ms, generatorBusy, othersBusy, latencies } = result
  const { cpuMs } = result.usages[0]! // the worker's
  const collectionsPerSecond = (wanted: number) =>
    (collections.filter(({ kind }) => kind === wanted).length / measuredMs) * 1000
  return {
    requests: answers,
    wantedPerSecond,
    latencyP50Ms: latencies.p50Ms,
    latencyP99Ms: latencies.p99Ms,
    latencyP999Ms: latencies.p999Ms,
    latencyMaxMs: latencies.maxMs,
    bareP99Ms: bare.latencies.p99Ms,
    bareMaxMs: bare.latencies.maxMs,
    ownLateP99Ms,
    loopDelayP99Ms: delayMs.p99,
    loopDelayMaxMs: delayMs.max,
    youngPerSecond: collectionsPerSecond(constants.NODE_PERFORMANCE_GC_MINOR),
    wholePerSecond: collectionsPerSecond(constants.NODE_PERFORMANCE_GC_MAJOR),
    longestCollectionMs: Math.max(0, ...collections.map(({ ms }) => ms)),
    cpuUs: (cpuMs / answers) * 1000,
    workerBusy: cpuMs / measuredMs,
    generatorBusy,
    othersBusy,
  }
}

/** undefined if every answer was the expected one. */
export function failureOf({ bad, badAnswers }: Pick<RunResult, 'bad' | 'badAnswers'>): string | undefined {
  if (bad === 0) return undefined
  return `${bad} answers were not the expected one; the first: ${badAnswers[0]!.replaceAll(/\s*\n\s*/g, ' | ')}`
}

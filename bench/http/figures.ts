/** Computes the figures of one run from what the load generator measured. */

import type { LoadResult, PacedResult } from '../../test/harness/load/loops.ts'
import type { MeasuredUsage } from '../../test/harness/measure.ts'

/** In the closed loop, at full load. */
export interface Figures {
  readonly requests: number
  readonly requestsPerSecond: number
  /** CPU time of all processes of the server, without Redis. */
  readonly cpuUs: number
  /** Only with Redis, as all that starts so. */
  readonly redisUs?: number
  /** Operations that went out together: requests by script calls. */
  readonly redisBatch?: number
  /** Per request: commands that the scripts run, bytes to Redis and back. */
  readonly redisCommands?: number
  readonly redisInBytes?: number
  readonly redisOutBytes?: number
  /** `cpuUs` against the bare server's; not of the bare server itself. */
  readonly timesBare?: number
  /** Of a whole answer, its head included. */
  readonly answerBytes: number
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

/** At a fixed rate. */
export interface LatencyFigures {
  readonly requests: number
  /** That was asked for, and as it came out. */
  readonly wantedPerSecond: number
  readonly ratePerSecond: number
  readonly latencyP50Ms: number
  readonly latencyP99Ms: number
  readonly latencyP999Ms: number
  readonly latencyMaxMs: number
  /** The generator's own part of the latencies. */
  readonly ownDelayP50Ms: number
  readonly ownDelayP99Ms: number
  /** Requests that waited for a connection, of all. */
  readonly waitedShare: number
  readonly cpuUs: number
  readonly redisUs?: number
  readonly workerBusy: number
  readonly generatorBusy: number
  readonly othersBusy: number
}

const MEBIBYTE = 2 ** 20

/** @param result its processes are the `own` of the server, the worker first, and Redis if there is one */
export function figuresOf(result: LoadResult, own: number): Figures {
  const { answers, measuredMs } = result
  const { worker, redis, ...costs } = costsOf(result.usages, own, answers)
  return {
    requests: answers,
    requestsPerSecond: (answers / measuredMs) * 1000,
    ...costs,
    answerBytes: result.answerBytes,
    workerBusy: worker.cpuMs / measuredMs,
    generatorBusy: result.generatorBusy,
    othersBusy: result.othersBusy,
    latencyP50Ms: result.latencyP50Ms,
    latencyP99Ms: result.latencyP99Ms,
    workerMibBefore: worker.residentBytesBefore / MEBIBYTE,
    workerMibAfter: worker.residentBytesAfter / MEBIBYTE,
    ...(redis !== undefined && {
      redisMibBefore: redis.residentBytesBefore / MEBIBYTE,
      redisMibAfter: redis.residentBytesAfter / MEBIBYTE,
    }),
    ...redisFiguresOf(result),
  }
}

function costsOf(usages: readonly MeasuredUsage[], own: number, requests: number) {
  const cpuMs = usages.slice(0, own).reduce((sum, usage) => sum + usage.cpuMs, 0)
  const redis = usages[own]
  return {
    worker: usages[0]!,
    redis,
    cpuUs: (cpuMs / requests) * 1000,
    ...(redis !== undefined && { redisUs: (redis.cpuMs / requests) * 1000 }),
  }
}

function redisFiguresOf({ answers, redis }: LoadResult) {
  if (redis === undefined) return {}
  return {
    ...(redis.scriptCalls > 0 && { redisBatch: answers / redis.scriptCalls }),
    redisCommands: redis.commands / answers,
    redisInBytes: redis.inBytes / answers,
    redisOutBytes: redis.outBytes / answers,
  }
}

/** @param result its processes are the `own` of the server, the worker first, and Redis if there is one */
export function latencyFiguresOf(result: PacedResult, own: number, wantedPerSecond: number): LatencyFigures {
  const { requests, measuredMs } = result
  const { worker, redis: _, ...costs } = costsOf(result.usages, own, requests)
  return {
    requests,
    wantedPerSecond,
    ratePerSecond: result.ratePerSecond,
    latencyP50Ms: result.latencyP50Ms,
    latencyP99Ms: result.latencyP99Ms,
    latencyP999Ms: result.latencyP999Ms,
    latencyMaxMs: result.latencyMaxMs,
    ownDelayP50Ms: result.ownDelayP50Ms,
    ownDelayP99Ms: result.ownDelayP99Ms,
    waitedShare: result.waitedShare,
    ...costs,
    workerBusy: worker.cpuMs / measuredMs,
    generatorBusy: result.generatorBusy,
    othersBusy: result.othersBusy,
  }
}

/** undefined if every answer was the expected one. */
export function failureOf(result: { badAnswers: number; badAnswer: string }): string | undefined {
  return result.badAnswers === 0
    ? undefined
    : `${result.badAnswers} answers were not the expected one; the first: ${result.badAnswer.replaceAll('\r\n', ' | ')}`
}

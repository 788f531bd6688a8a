/** Computes the figures of one run from what the load generator measured. */

import type { LoadResult, PacedResult } from '../../test/harness/load/loops.ts'
import type { MeasuredUsage } from '../../test/harness/measure.ts'
import { collectionsOf, type Look } from './probe.ts'

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

/** At a fixed rate. Delays are in milliseconds. */
export interface LatencyFigures {
  readonly requests: number
  /** That was asked for, and as it came out. */
  readonly wantedPerSecond: number
  readonly ratePerSecond: number
  readonly latencyP50Ms: number
  readonly latencyP99Ms: number
  readonly latencyP999Ms: number
  readonly latencyMaxMs: number
  /** Of the bare server at the same rate: what the machine and the generator do to any server. */
  readonly bareP99Ms: number
  readonly bareMaxMs: number
  /** The generator's own part of the latencies. */
  readonly ownDelayP99Ms: number
  /** Requests that waited for a connection, of all. */
  readonly waitedShare: number
  /** How late the worker's event loop came to a timer. */
  readonly loopDelayP99Ms: number
  readonly loopDelayMaxMs: number
  /** Collections of the young generation and of the whole heap, a second, and the longest pause of both. */
  readonly youngPerSecond: number
  readonly wholePerSecond: number
  readonly longestCollectionMs: number
  readonly cpuUs: number
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

/** @param result its first process is the worker */
export function latencyFiguresOf(
  result: PacedResult,
  wantedPerSecond: number,
  look: Look,
  bare: PacedResult,
): LatencyFigures {
  const { requests, measuredMs } = result
  const { cpuMs } = result.usages[0]!
  const { young, whole, longestMs } = collectionsOf(look)
  return {
    requests,
    wantedPerSecond,
    ratePerSecond: result.ratePerSecond,
    latencyP50Ms: result.latencyP50Ms,
    latencyP99Ms: result.latencyP99Ms,
    latencyP999Ms: result.latencyP999Ms,
    latencyMaxMs: result.latencyMaxMs,
    bareP99Ms: bare.latencyP99Ms,
    bareMaxMs: bare.latencyMaxMs,
    ownDelayP99Ms: result.ownDelayP99Ms,
    waitedShare: result.waitedShare,
    loopDelayP99Ms: look.delayMs.p99,
    loopDelayMaxMs: look.delayMs.max,
    youngPerSecond: (young / measuredMs) * 1000,
    wholePerSecond: (whole / measuredMs) * 1000,
    longestCollectionMs: longestMs,
    cpuUs: (cpuMs / requests) * 1000,
    workerBusy: cpuMs / measuredMs,
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

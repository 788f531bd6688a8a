/** Measures one point: starts a fresh service, fills its store, loads it, and records the cost. */

import type { LoadResult } from '../http/load.ts'
import type { LoadProcess } from '../http/load-process.ts'
import { SEED_MS_MAX, seed } from '../http/seeding.ts'
import { type RunningService, startService } from '../http/server.ts'
import type { ServerSlot } from '../http/server-slot.ts'
import { type Endpoint, MARKERS, type TrafficSpec } from '../http/traffic.ts'
import { checkAddresses, fillAddresses, fillSites } from './fill.ts'
import type { Options } from './options.ts'
import type { Point } from './points.ts'

/** CPU times are sums over the processes of a kind. */
export interface Cost {
  readonly requests: number
  readonly requestsPerSecond: number
  readonly workerUs: number
  /** Of the process that supervises the workers. */
  readonly primaryUs: number
  /** Only with Redis, as all that starts so. */
  readonly redisUs?: number
  /** Operations that went out together: requests by script calls. */
  readonly redisBatch?: number
  /** CPU time over measured time of the busiest of them. */
  readonly redisBusy?: number
  /** CPU time of one worker over measured time, on average. */
  readonly workerBusy: number
  readonly generatorBusy: number
  /** Of everything else on the machine; 1 is a whole core. */
  readonly othersBusy: number
  /** Of the requests that named each site for the first time; only of many sites. */
  readonly coldPerSecond?: number
  /** How long it took to put the addresses into the store; only with such. */
  readonly fillSeconds?: number
}

export interface Measured {
  /** undefined if nothing could be measured. */
  readonly cost: Cost | undefined
  /** undefined if every answer was the expected one. */
  readonly failure: string | undefined
  readonly ranOut: boolean
}

/** Requests are built for this rate, the most that a point is expected to reach, ... */
const REQUESTS_PER_SECOND_MAX = 100_000
/** ... but no more of them than memory allows. */
const REQUESTS_MAX = 600_000
const REQUESTS_MIN = 20_000
/** Below every limit of an address for a minute. */
const REQUESTS_PER_ADDRESS = 15
/** Numbers of the requests that name each site for the first time: no others reach so far. */
const COLD_INDEX = 2 ** 23
/** Fewer sites are known after so short a time that it cannot be measured. */
const COLD_SITES_MIN = 1000
const COLD_MS_MAX = 60_000
const SEED_START_MS = 1000

/** Never rejects because of what the service or its store does: that is a failure of the point. */
export async function measurePoint(
  endpoint: Endpoint,
  point: Point,
  { options, load, slot }: { options: Options; load: LoadProcess; slot: ServerSlot },
): Promise<Measured> {
  const env = { POWGATE_WORKERS: String(point.workers) }
  const service = await slot.start(() => startService(point.server, true, env))
  try {
    const { result, ...more } = await measureOn(service, endpoint, point, options, load)
    const { badAnswers, badAnswer, ranOut } = result
    const failure = `${badAnswers} answers were not the expected one; the first: ${badAnswer}`
    return {
      cost: { ...costOf(result, service), ...more },
      failure: badAnswers === 0 ? undefined : failure.replaceAll('\r\n', ' | '),
      ranOut,
    }
  } catch (error) {
    return { cost: undefined, failure: (error as Error).message, ranOut: false }
  } finally {
    await slot.stop()
  }
}

async function measureOn(
  service: RunningService,
  endpoint: Endpoint,
  point: Point,
  options: Options,
  load: LoadProcess,
): Promise<{ result: LoadResult; coldPerSecond?: number; fillSeconds?: number }> {
  const { port, workerPids, primaryPid, redisPids, redisPorts } = service
  const { connections, seconds, warmUpSeconds } = options
  const sites = point.sites === 0 ? [] : await fillSites(service, point.sites)
  const target = { ...service.target, sites }
  const count = requestCount(seconds + warmUpSeconds)
  const traffic: TrafficSpec = { endpoint, count, target, isForwarded: true, ...poolOf(point, count) }
  await load.build(traffic) // first: addresses are forgotten after a minute
  const marker = MARKERS[endpoint]
  const cold =
    point.sites === 0 ? {} : await passOver(load, traffic, point.sites, { port, connections, marker })
  if (endpoint === 'verify' && point.addresses === 0) {
    const msMax = Math.min(SEED_MS_MAX, (seconds + warmUpSeconds) * 1000 + SEED_START_MS)
    await seed(load, traffic, { port, connections, msMax })
  }
  const fillMs = point.addresses === 0 ? 0 : await fillAddresses(service, point.addresses)
  const result = await load.run({
    port,
    connections,
    warmUpMs: warmUpSeconds * 1000,
    measureMs: seconds * 1000,
    recycles: false,
    marker,
    pids: [...workerPids, ...redisPids, primaryPid],
    redisPorts,
  })
  if (point.addresses > 0) await checkAddresses(service, point.addresses)
  return { result, ...cold, ...(point.addresses > 0 && { fillSeconds: fillMs / 1000 }) }
}

/**
 * Where addresses are counted, the load's own must be few and the same at every point: they come again and again, as
 * often as limits allow.
 */
function poolOf(point: Point, count: number): { addresses?: number } {
  return point.addresses === 0 ? {} : { addresses: Math.ceil(count / REQUESTS_PER_ADDRESS) }
}

function requestCount(seconds: number): number {
  const count = Math.ceil(seconds * REQUESTS_PER_SECOND_MAX)
  return Math.max(REQUESTS_MIN, Math.min(REQUESTS_MAX, count))
}

/** Every site is named once: after that the workers know it. (Of several workers each keeps its own copies.) */
async function passOver(
  load: LoadProcess,
  traffic: TrafficSpec,
  sites: number,
  at: { port: number; connections: number; marker: string },
): Promise<{ coldPerSecond?: number }> {
  // From few addresses, lest those in the store grow with the sites.
  const addresses = Math.ceil(sites / REQUESTS_PER_ADDRESS)
  const once: TrafficSpec = { ...traffic, count: sites, firstIndex: COLD_INDEX, addresses }
  const { sent, elapsedMs } = await load.sendAll(once, { ...at, msMax: COLD_MS_MAX })
  if (sent < sites) throw new Error(`only ${sent} of ${sites} sites were loaded within ${COLD_MS_MAX} ms`)
  return sites < COLD_SITES_MIN ? {} : { coldPerSecond: (sent / elapsedMs) * 1000 }
}

/** @param result its processes are the workers, then those of Redis, then the primary */
function costOf(result: LoadResult, { workerPids, redisPids }: RunningService): Cost {
  const { answers, measuredMs, usages, redis } = result
  const cpuMs = usages.map(usage => usage.cpuMs)
  const workersMs = sum(cpuMs.slice(0, workerPids.length))
  const redisMs = cpuMs.slice(workerPids.length, workerPids.length + redisPids.length)
  const us = (ms: number) => (ms / answers) * 1000
  return {
    requests: answers,
    requestsPerSecond: (answers / measuredMs) * 1000,
    workerUs: us(workersMs),
    primaryUs: us(cpuMs.at(-1)!),
    ...(redisMs.length > 0 && { redisUs: us(sum(redisMs)), redisBusy: Math.max(...redisMs) / measuredMs }),
    ...(redis !== undefined && redis.scriptCalls > 0 && { redisBatch: answers / redis.scriptCalls }),
    workerBusy: workersMs / workerPids.length / measuredMs,
    generatorBusy: result.generatorBusy,
    othersBusy: result.othersBusy,
  }
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}

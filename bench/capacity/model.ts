/** Computes what a load needs and what an attack costs, from measured costs. Pure: all figures are arguments. */

import { ACCEPTED_MS } from '../../src/domain/address-log.ts'
import type { Endpoint } from '../../test/harness/load/traffic.ts'
import type { Spread } from '../../test/harness/measure.ts'
import type { StoreKind } from '../../test/harness/service.ts'
import { PRICES } from '../effect/scenario.ts'

/** CPU time of one request, microseconds. */
export interface EndpointCost {
  readonly workerUs: Spread
  /** Only with Redis. */
  readonly redisUs?: Spread
}

export type StoreCosts = Readonly<Record<Endpoint, EndpointCost>>

/** What was measured. What is missing is left out of the results. */
export interface Measurements {
  readonly http: Readonly<Partial<Record<StoreKind, StoreCosts>>>
  /** One thread of a browser with WebAssembly SIMD. */
  readonly browserHashesPerSecond?: Spread
  /** In Redis, of an address that was active in the last minute. */
  readonly bytesPerActiveAddress?: { readonly typical: number; readonly atLimits: number }
  /** The verification alone, in process, without HTTP and store: CPU time in microseconds. */
  readonly verificationUs?: Spread
}

export interface Assumptions {
  /** Share of its time that a core is planned to be busy, of workers and of Redis alike. */
  readonly busyMax: number
  /** Of one core, in some unit of currency. */
  readonly pricePerHour: number
  /** One thread of an attacker's native code. */
  readonly nativeHashesPerSecond: number
}

export const ASSUMED: Omit<Assumptions, 'pricePerHour'> = {
  busyMax: 0.6,
  // Published for AVX-512 code, not measured here.
  nativeHashesPerSecond: PRICES.threadMhs * 1e6,
}

/** Challenges per second. */
const RATES = [10_000, 100_000, 1_000_000] as const
/** Bits, the bounds of what a site may ask for and all even ones between. */
const DIFFICULTIES = [16, 18, 20, 22, 24, 26, 28] as const
export const DEFAULT_DIFFICULTY = 18

/** CPU time of a visitor: one challenge, one verification, one redemption. Microseconds. */
export interface FlowCost {
  readonly workerUs: Spread
  readonly redisUs: Spread
}

export interface Plan {
  readonly challengesPerSecond: number
  readonly workerCores: Spread
  readonly redisPrimaries: Spread
  /** If each visitor comes from an address of its own; only if memory was measured. */
  readonly redisBytes?: number
}

export interface MillionCost {
  /** Of workers and Redis together. */
  readonly cpuSeconds: Spread
  /** At the planned share of busy time, so idle time is paid for too. */
  readonly price: Spread
}

export interface Defence {
  readonly difficulty: number
  readonly meanHashes: number
  /** Of browsers only if they were measured. */
  readonly attackers: { readonly browser?: Attacker; readonly native: Attacker }
}

export interface Attacker {
  /** Per accepted proof, by mean. */
  readonly cpuSeconds: number
  /** Against all that the accepted proof costs us. */
  readonly timesOurs: number
}

export interface Capacity {
  readonly flows: Readonly<Partial<Record<StoreKind, FlowCost>>>
  /** Visitors a second that one planned core of workers serves. */
  readonly visitorsPerCore: Readonly<Partial<Record<StoreKind, number>>>
  /** With Redis. */
  readonly plans: readonly Plan[]
  readonly perMillion: Readonly<Partial<Record<StoreKind, MillionCost>>>
  readonly redisBytesPerMillionAddresses?: { readonly typical: number; readonly atLimits: number }
  /** Our CPU time for an accepted proof, and with which store. */
  readonly defender: { readonly store: StoreKind; readonly cpuSeconds: number }
  readonly defences: readonly Defence[]
}

/** @param measurements of one store at least */
export function capacityOf(measurements: Measurements, assumptions: Assumptions): Capacity {
  const { http, bytesPerActiveAddress: bytes } = measurements
  const flows = mapped(http, flowCost)
  const store = flows.redis === undefined ? 'embedded' : 'redis'
  const flow = flows[store]
  if (flow === undefined) throw new RangeError('there are no costs of any store')
  const cpuSeconds = (flow.workerUs.median + flow.redisUs.median) / 1e6
  return {
    flows,
    visitorsPerCore: mapped(flows, ({ workerUs }) => (assumptions.busyMax * 1e6) / workerUs.median),
    plans:
      flows.redis === undefined
        ? []
        : RATES.map(rate => plan(rate, flows.redis!, assumptions, bytes?.typical)),
    perMillion: mapped(flows, one => millionCost(one, assumptions)),
    ...(bytes !== undefined && {
      redisBytesPerMillionAddresses: { typical: bytes.typical * 1e6, atLimits: bytes.atLimits * 1e6 },
    }),
    defender: { store, cpuSeconds },
    defences: DIFFICULTIES.map(bits => defence(bits, cpuSeconds, measurements, assumptions)),
  }
}

/** Least and most are sums of the least and the most: as if all were good or bad at once. */
function flowCost(costs: StoreCosts): FlowCost {
  const all = Object.values(costs)
  const none = { median: 0, min: 0, max: 0 }
  return {
    workerUs: all.map(cost => cost.workerUs).reduce(sum),
    redisUs: all.map(cost => cost.redisUs ?? none).reduce(sum),
  }
}

/** An accepted proof counts for its address for so long, which is more than a used nonce needs. */
export const REMEMBERED_SECONDS = ACCEPTED_MS / 1000

/** @param bytesPerAddress in Redis, of an address with one challenge and one verification */
function plan(
  challengesPerSecond: number,
  { workerUs, redisUs }: FlowCost,
  { busyMax }: Pick<Assumptions, 'busyMax'>,
  bytesPerAddress?: number,
): Plan {
  const cores = (us: number) => Math.max(1, Math.ceil((challengesPerSecond * us) / 1e6 / busyMax))
  return {
    challengesPerSecond,
    workerCores: each(workerUs, cores),
    redisPrimaries: each(redisUs, cores),
    ...(bytesPerAddress !== undefined && {
      redisBytes: challengesPerSecond * REMEMBERED_SECONDS * bytesPerAddress,
    }),
  }
}

/** A million microseconds are a second: of a million visitors, CPU-seconds are what is microseconds of one. */
function millionCost(
  { workerUs, redisUs }: FlowCost,
  { busyMax, pricePerHour }: Pick<Assumptions, 'busyMax' | 'pricePerHour'>,
): MillionCost {
  const cpuSeconds = sum(workerUs, redisUs)
  return { cpuSeconds, price: each(cpuSeconds, seconds => (seconds / busyMax / 3600) * pricePerHour) }
}

/** Tries are geometric with mean 2^bits, whatever was tried before. */
function defence(
  difficulty: number,
  ourCpuSeconds: number,
  { browserHashesPerSecond: browser }: Pick<Measurements, 'browserHashesPerSecond'>,
  { nativeHashesPerSecond }: Pick<Assumptions, 'nativeHashesPerSecond'>,
): Defence {
  const meanHashes = 2 ** difficulty
  const attacker = (hashesPerSecond: number): Attacker => {
    const cpuSeconds = meanHashes / hashesPerSecond
    return { cpuSeconds, timesOurs: cpuSeconds / ourCpuSeconds }
  }
  return {
    difficulty,
    meanHashes,
    attackers: {
      ...(browser !== undefined && { browser: attacker(browser.median) }),
      native: attacker(nativeHashesPerSecond),
    },
  }
}

function sum(a: Spread, b: Spread): Spread {
  return { median: a.median + b.median, min: a.min + b.min, max: a.max + b.max }
}

function each({ median, min, max }: Spread, change: (value: number) => number): Spread {
  return { median: change(median), min: change(min), max: change(max) }
}

function mapped<From, To>(
  values: Readonly<Partial<Record<StoreKind, From>>>,
  change: (value: From) => To,
): Partial<Record<StoreKind, To>> {
  return Object.fromEntries(
    Object.entries(values).map(([store, value]) => [store, change(value)]),
  ) as Partial<Record<StoreKind, To>>
}

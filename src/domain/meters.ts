/**
 * Meters: how many accepted proofs a network, or the returning addresses of a site, bring now and usually. A meter is two
 * exponentially weighted averages, kept as sums that fade, and when they were last faded:
 *
 *   | at, Unix ms 8 | recent 4 | usual 8 |     floating point, big endian
 *
 * What stores do with them, store/redis/lua/meters.lua as this file: fade, and add.
 */

import { POLICY, type Policy } from './policy.ts'

export interface Meter {
  atMs: number
  recent: number
  usual: number
}

/** Proofs a minute. */
export interface Rates {
  readonly recent: number
  readonly usual: number
}

/** What a request's store call answers. */
export interface Meters {
  /** Of the store, milliseconds: the site's usual rate was gathered for so long. */
  readonly ageMs: number
  /** Of the names of networks, which change with the first secret. */
  readonly namesAgeMs: number
  readonly site: Meter
  /** The owner's network, then the wide one; empty if not counted. */
  readonly networks: readonly Meter[]
}

export const MINUTE_MS = 60_000
export const DAY_MS = 86_400_000
export const METER_BYTES = 20
/** A meter is kept so long for each proof that it knows. */
export const KEPT_MS_A_PROOF = 300_000
export const KEPT_MS_MAX = 7 * DAY_MS

export function newMeter(nowMs: number): Meter {
  return { atMs: nowMs, recent: 0, usual: 0 }
}

/** Zeros are a new one. */
export function readMeter(bytes: Buffer, at: number, nowMs: number): Meter {
  const atMs = bytes.readDoubleBE(at)
  if (atMs === 0) return newMeter(nowMs)
  return { atMs, recent: bytes.readFloatBE(at + 8), usual: bytes.readDoubleBE(at + 12) }
}

export function writeMeter(bytes: Buffer, at: number, { atMs, recent, usual }: Meter): void {
  bytes.writeDoubleBE(atMs, at)
  bytes.writeFloatBE(recent, at + 8)
  bytes.writeDoubleBE(usual, at + 12)
}

/** If the clock was set back the sums fade by as much; otherwise they would stand still until it catches up. */
export function fade(meter: Meter, nowMs: number, recentMs: number, { usualMs }: Policy): void {
  const elapsedMs = Math.abs(nowMs - meter.atMs)
  meter.recent *= Math.exp(-elapsedMs / recentMs)
  meter.usual *= Math.exp(-elapsedMs / usualMs)
  meter.atMs = nowMs
}

/**
 * Of a meter that was just faded. As `usual` fades, its sum stands for less time than the store's age.
 *
 * @param ageMs of the store: by its own age, a new network's first burst would seem its usual rate
 */
export function ratesOf(
  { recent, usual }: Pick<Meter, 'recent' | 'usual'>,
  ageMs: number,
  recentMs: number,
  { usualMs }: Policy,
): Rates {
  const gatheredMs = Math.max(MINUTE_MS, usualMs * (1 - Math.exp(-ageMs / usualMs)))
  return { recent: (recent * MINUTE_MS) / recentMs, usual: (usual * MINUTE_MS) / gatheredMs }
}

/** Proofs a minute that cost nothing. @param free however little is usual */
export function budgetOf({ usual }: Rates, free: number, { tolerated }: Policy): number {
  return Math.max(free, tolerated * usual)
}

/**
 * Adds an accepted proof to meters that were just faded: to the site's only if the address returns. Above half a budget only that
 * half is learned as usual, or an attack would become usual: who always stays at the budget makes it grow e-fold a day.
 *
 * @param free proofs a minute that cost nothing: of the site, then of each network
 * @param accepted earlier proofs of the address
 * @param proofs 1, or -1 to take one back
 * @returns whether the site's meter changed
 */
export function addProof(
  { ageMs, namesAgeMs, site, networks }: Meters,
  free: readonly number[],
  accepted: number,
  proofs: 1 | -1,
  policy: Policy,
): boolean {
  const isReturning = accepted >= policy.returningProofs
  if (isReturning) add(site, proofs, ageMs, policy.siteRecentMs, free[0]!, policy)
  for (const [index, meter] of networks.entries())
    add(meter, proofs, namesAgeMs, policy.networkRecentMs, free[1 + index]!, policy)
  return isReturning
}

function add(
  meter: Meter,
  proofs: number,
  ageMs: number,
  recentMs: number,
  free: number,
  policy: Policy,
): void {
  // As it was before the proof, also to take it back: else a refused one at the budget would leave half of itself as usual.
  const before = meter.recent + Math.min(0, proofs)
  const rates = ratesOf({ recent: before, usual: meter.usual }, ageMs, recentMs, policy)
  const budget = budgetOf(rates, free, policy)
  const share = ageMs < policy.learnsAllMs ? 1 : Math.min(1, (policy.learnedShare * budget) / rates.recent)
  meter.recent = Math.max(0, meter.recent + proofs)
  meter.usual = Math.max(0, meter.usual + proofs * share)
}

/** @param list as a store answers: two first proofs (`usual` is that time), the site, then the networks */
export function metersFrom([born, named, site, ...networks]: readonly Meter[], nowMs: number): Meters {
  const ageOf = ({ usual }: Meter) => Math.max(0, nowMs - (usual || nowMs))
  return { ageMs: ageOf(born!), namesAgeMs: ageOf(named!), site: site!, networks }
}

/** Of the time of a first proof: if the clock was ahead then, the age starts anew. */
export function bornBy(born: Meter, nowMs: number): void {
  if (born.usual === 0 || born.usual > nowMs) born.usual = nowMs
}

export function fadeAll({ site, networks }: Meters, nowMs: number, policy: Policy): void {
  fade(site, nowMs, policy.siteRecentMs, policy)
  for (const meter of networks) fade(meter, nowMs, policy.networkRecentMs, policy)
}

export function keptMs({ usual }: Meter): number {
  return Math.min(KEPT_MS_MAX, KEPT_MS_A_PROOF * Math.max(1, usual))
}

/** Proofs a minute over the last day, with less weight the longer ago; undefined without meters. In a store's first day it is still too low. */
export function dailyRate(
  meters: readonly Meter[],
  nowMs: number,
  { usualMs }: Policy = POLICY,
): number | undefined {
  if (meters.length === 0) return undefined
  const faded = meters.map(({ usual, atMs }) => usual * Math.exp(-Math.abs(nowMs - atMs) / usualMs))
  return (faded.reduce((sum, usual) => sum + usual, 0) * MINUTE_MS) / usualMs
}

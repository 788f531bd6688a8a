/**
 * Meters: how many accepted proofs a network, or a site's returning addresses (`returningProofs`), bring now and usually. A meter is
 * two exponentially weighted averages, kept as sums that fade, and when they were last faded:
 *
 *   | at, Unix ms 8 | recent 4 | usual 8 |     bytes of floating point, big endian
 *
 * Both stores fade and add alike: the embedded store by this file, Redis by store/redis/lua/visits/meters.lua.
 */

import { PRICING, type Pricing } from './pricing.ts'

/** The time of a first proof (`AddressTags.firstProofNames`) is kept in this form too: Unix ms in `usual`, and its renewal in `atMs`. */
export interface Meter {
  atMs: number
  recent: number
  usual: number
}

/** Proofs a minute; price.ts explains the words. */
export interface Rates {
  readonly recent: number
  readonly usual: number
}

/** The store returns these to each request of a visitor. */
export interface Meters {
  /** The store's age in milliseconds, over which the site's usual rate was gathered. */
  readonly ageMs: number
  /** The age of networks' names, which change with the first secret. */
  readonly namesAgeMs: number
  readonly site: Meter
  /** The owner's network, then the wide one; empty if not counted. */
  readonly networks: readonly Meter[]
}

export const MINUTE_MS = 60_000
export const DAY_MS = 86_400_000
export const METER_BYTES = 20
/** A meter is kept for this time per proof that it has counted. */
export const KEPT_MS_A_PROOF = 300_000
export const KEPT_MS_MAX = 7 * DAY_MS

export function newMeter(nowMs: number): Meter {
  return { atMs: nowMs, recent: 0, usual: 0 }
}

/** A meter of zeros is a new one. */
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

/** After the clock was set back, sums fade by the difference; otherwise they would not fade until the clock catches up. */
function fade(meter: Meter, nowMs: number, recentMs: number, { usualMs }: Pricing): void {
  const elapsedMs = Math.abs(nowMs - meter.atMs)
  meter.recent *= Math.exp(-elapsedMs / recentMs)
  meter.usual *= Math.exp(-elapsedMs / usualMs)
  meter.atMs = nowMs
}

/**
 * Rates of a meter that was just faded. `usual` fades too, so its sum stands for less time than `ageMs`.
 *
 * @param ageMs the store's age. With a new network's own age, its first burst would seem its usual rate
 */
export function ratesOf(
  { recent, usual }: Pick<Meter, 'recent' | 'usual'>,
  ageMs: number,
  recentMs: number,
  { usualMs }: Pricing,
): Rates {
  const gatheredMs = Math.max(MINUTE_MS, usualMs * (1 - Math.exp(-ageMs / usualMs)))
  return { recent: (recent * MINUTE_MS) / recentMs, usual: (usual * MINUTE_MS) / gatheredMs }
}

export function budgetOf({ usual }: Rates, free: number, { budgetFactor }: Pricing): number {
  return Math.max(free, budgetFactor * usual)
}

/**
 * Adds an accepted proof to meters that were just faded: to the site's only if the address returns. Above half a budget only that
 * half is learned as usual, or an attack would soon become usual. Above what is free, half a budget is twice the usual rate, so a flood
 * makes that grow 2.7-fold (e) a day at most, faster only in a store's first days.
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
  pricing: Pricing,
): boolean {
  const isReturning = accepted >= pricing.returningProofs
  if (isReturning) add(site, proofs, ageMs, pricing.siteRecentMs, free[0]!, pricing)
  for (const [index, meter] of networks.entries())
    add(meter, proofs, namesAgeMs, pricing.networkRecentMs, free[1 + index]!, pricing)
  return isReturning
}

function add(
  meter: Meter,
  proofs: number,
  ageMs: number,
  recentMs: number,
  free: number,
  pricing: Pricing,
): void {
  // Adding a proof and taking it back use one rate, the one before the proof: with two, a part of the proof would stay. If the proof
  // was the only one and has faded since, that rate is below 0, so below `learnedRate`: the share is 1, and all is taken back.
  const recentBefore = meter.recent + Math.min(0, proofs)
  const rates = ratesOf({ recent: recentBefore, usual: meter.usual }, ageMs, recentMs, pricing)
  const learnedRate = pricing.learnedShare * budgetOf(rates, free, pricing)
  const share = ageMs < pricing.learnsAllMs || rates.recent <= learnedRate ? 1 : learnedRate / rates.recent
  meter.recent = Math.max(0, meter.recent + proofs)
  meter.usual = Math.max(0, meter.usual + proofs * share)
}

/** @param list the times of the first proofs, then the site's meter, then the networks' */
export function metersFrom([first, firstNamed, site, ...networks]: readonly Meter[], nowMs: number): Meters {
  const ageOf = ({ usual }: Meter) => Math.max(0, nowMs - (usual || nowMs))
  return { ageMs: ageOf(first!), namesAgeMs: ageOf(firstNamed!), site: site!, networks }
}

/** Sets or renews the time of a first proof. If the clock was ahead at that time, the age starts anew. */
export function renewFirstProof(time: Meter, nowMs: number): void {
  if (time.usual === 0 || time.usual > nowMs) time.usual = nowMs
  time.atMs = nowMs
}

export function fadeAll({ site, networks }: Meters, nowMs: number, pricing: Pricing): void {
  fade(site, nowMs, pricing.siteRecentMs, pricing)
  for (const meter of networks) fade(meter, nowMs, pricing.networkRecentMs, pricing)
}

/** The store keeps a meter for this time: for KEPT_MS_MAX that of a first proof, which is a huge number in `usual`. */
export function keptMs({ usual }: Meter): number {
  return Math.min(KEPT_MS_MAX, KEPT_MS_A_PROOF * Math.max(1, usual))
}

/** Usual proofs a minute, over the whole last day, so too low in a store's first day; undefined without meters. */
export function dailyRate(meters: readonly Meter[], nowMs: number): number | undefined {
  if (meters.length === 0) return undefined
  const { usualMs } = PRICING
  const faded = meters.map(({ usual, atMs }) => usual * Math.exp(-Math.abs(nowMs - atMs) / usualMs))
  return (faded.reduce((sum, usual) => sum + usual, 0) * MINUTE_MS) / usualMs
}

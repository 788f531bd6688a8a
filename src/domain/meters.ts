/**
 * Meters: how many accepted proofs a network, a site or all traffic brings, now and usually. They live in the store, which
 * returns those that a request's price depends on and adds an accepted proof in the same call, so all workers and hosts use the
 * same counts. Unsolved challenges never count: without work, nobody can make challenges harder for others.
 *
 *   | since, Unix seconds 4 | at, Unix ms 8 | fast 4 | slow 8 |     floating-point but `since`; big endian
 *
 * `fast` fades within about a minute, `slow` within about a day. Traffic above a budget is learned at the usual rate only;
 * otherwise an attack would become usual. A meter is kept five minutes per proof in its slow count, at most a week.
 * (store/redis/lua/meters.lua mirrors this file and passes its tests.)
 */

import { DEFAULT_POLICY, type DifficultyPolicy, levelsOf } from './policy.ts'

export interface Meter {
  /** Time of the first proof, Unix milliseconds; never in the future. */
  sinceMs: number
  /** When the counts were last faded. */
  atMs: number
  fast: number
  slow: number
  /** Whether it must be written back. */
  isChanged: boolean
}

/** Proofs a minute. */
export interface Rates {
  readonly recent: number
  readonly usual: number
  /** Days since the first proof. */
  readonly days: number
}

/** A site counts proofs of repeat sources apart from all others. */
export interface SiteMeters {
  readonly repeat: Meter
  readonly first: Meter
}

/** For a site with a target solve time: proofs at its base, and how many of them took longer. */
export interface SolveMeters {
  readonly timed?: Meter | undefined
  readonly late?: Meter | undefined
}

export interface Meters {
  readonly all: Meter
  readonly site: SiteMeters & SolveMeters
  /** The owner's network, then the wide one; empty if networks are not counted. */
  readonly networks: readonly Meter[]
}

/** What is known about a proof before the store is asked. */
export interface ProofSource {
  readonly isV4: boolean
  /** The operator's estimate: proofs of repeat sources a minute; 0 if there is none. */
  readonly expected: number
  /** Whether it met the site's target solve time; undefined if the site has none. */
  readonly isInTime?: boolean | undefined
}

export interface NetworkRates extends Rates {
  readonly prefixBits: number
}

/** A request's meters as rates. */
export interface Traffic {
  /** Around the address; empty if none is metered. */
  readonly networks: readonly NetworkRates[]
  readonly all: Rates
  readonly siteRepeat: Rates
  readonly siteFirst: Rates
  /** The operator's estimate: proofs of repeat sources a minute. */
  readonly siteExpected: number
  /**
   * The operator said that many people share this network: it costs them nothing, and an attack on the site one bit at most.
   */
  readonly isKnownNetwork: boolean
}

const NO_RATES: Rates = { recent: 0, usual: 0, days: 0 }

/** For when the store is away. */
export const NO_TRAFFIC: Traffic = {
  networks: [],
  all: NO_RATES,
  siteRepeat: NO_RATES,
  siteFirst: NO_RATES,
  siteExpected: 0,
  isKnownNetwork: false,
}

export const MINUTE_MS = 60_000
export const DAY_MS = 86_400_000
const HOURS_A_DAY = 24
export const KEPT_MS_A_PROOF = 300_000
export const KEPT_MS_MAX = 7 * DAY_MS

export const METER_BYTES = 24

export function newMeter(nowMs: number): Meter {
  return { sinceMs: Math.floor(nowMs / 1000) * 1000, atMs: nowMs, fast: 0, slow: 0, isChanged: false }
}

/** @returns a new meter if the bytes are zeros */
export function readMeter(bytes: Buffer, at: number, nowMs: number): Meter {
  const atMs = bytes.readDoubleBE(at + 4)
  if (atMs === 0) return newMeter(nowMs)
  return {
    sinceMs: bytes.readUInt32BE(at) * 1000,
    atMs,
    fast: bytes.readFloatBE(at + 12),
    slow: bytes.readDoubleBE(at + 16),
    isChanged: false,
  }
}

export function writeMeter(bytes: Buffer, at: number, { sinceMs, atMs, fast, slow }: Meter): void {
  bytes.writeUInt32BE(Math.floor(sinceMs / 1000), at)
  bytes.writeDoubleBE(atMs, at + 4)
  bytes.writeFloatBE(fast, at + 12)
  bytes.writeDoubleBE(slow, at + 16)
}

/** How long to keep a meter after its last proof. */
export function keptMs({ slow }: Meter): number {
  return Math.min(KEPT_MS_MAX, KEPT_MS_A_PROOF * Math.max(1, slow))
}

/** Meters that all requests to a site share: all traffic, and the site's. */
export function meterNames(siteKey: string, hasSolveTime: boolean): readonly string[] {
  const names = ['m:all', `m:${siteKey}:repeat`, `m:${siteKey}:first`]
  return hasSolveTime ? [...names, `m:${siteKey}:timed`, `m:${siteKey}:late`] : names
}

/** @param sharedCount how many `meterNames` there are */
export function hasSolveMeters(sharedCount: number): boolean {
  return sharedCount > 3
}

/** @param list the `sharedCount` meters of `meterNames` in that order, then the networks */
export function metersFrom(list: readonly Meter[], sharedCount: number): Meters {
  const [timed, late] = hasSolveMeters(sharedCount) ? [list[3], list[4]] : []
  return {
    all: list[0]!,
    site: { repeat: list[1]!, first: list[2]!, timed, late },
    networks: list.slice(sharedCount),
  }
}

/** Fades the counts to now. If the clock was set back they fade by as much, or they would stand still until it catches up. */
export function fadeAll({ all, site, networks }: Meters, nowMs: number): void {
  const { networkFastMs, siteFastMs } = DEFAULT_POLICY
  fade(all, nowMs, networkFastMs)
  fade(site.repeat, nowMs, siteFastMs)
  fade(site.first, nowMs, networkFastMs)
  for (const meter of networks) fade(meter, nowMs, networkFastMs)
  if (site.timed !== undefined) fade(site.timed, nowMs, networkFastMs)
  if (site.late !== undefined) fade(site.late, nowMs, networkFastMs)
}

function fade(meter: Meter, nowMs: number, fastMs: number): void {
  if (nowMs === meter.atMs) return
  const elapsedMs = Math.abs(nowMs - meter.atMs)
  meter.fast *= Math.exp(-elapsedMs / fastMs)
  meter.slow *= Math.exp(-elapsedMs / DEFAULT_POLICY.slowMs)
  meter.sinceMs = Math.min(meter.sinceMs, nowMs)
  meter.atMs = nowMs
}

/** @param ageMs since the first proof of the site; for networks and all traffic, since the first of all traffic */
function ratesOf({ fast, slow, atMs, sinceMs }: Meter, ageMs: number, fastMs: number): Rates {
  const { slowMs } = DEFAULT_POLICY
  const gatheredMs = Math.max(MINUTE_MS, slowMs * (1 - Math.exp(-ageMs / slowMs)))
  return {
    recent: (fast * MINUTE_MS) / fastMs,
    usual: (slow * MINUTE_MS) / gatheredMs,
    days: (atMs - sinceMs) / DAY_MS,
  }
}

export function siteRates({ repeat, first }: SiteMeters): { readonly repeat: Rates; readonly first: Rates } {
  const ageMs = repeat.atMs - Math.min(repeat.sinceMs, first.sinceMs)
  const { networkFastMs, siteFastMs } = DEFAULT_POLICY
  return { repeat: ratesOf(repeat, ageMs, siteFastMs), first: ratesOf(first, ageMs, networkFastMs) }
}

/** Traffic now as a multiple of the usual; at least 1. */
export function growthOf({ recent, usual }: Rates, { growthMax, usualMin }: DifficultyPolicy): number {
  return Math.min(growthMax, Math.max(1, recent / Math.max(usualMin, usual)))
}

/** Proofs a minute that a network may bring for free. Grows on busy days, in a network's first hour only in part. */
export function networkBudget(
  { usual, days }: Rates,
  free: number,
  growth: number,
  { tolerated }: DifficultyPolicy,
): number {
  const ownGrowth = 1 + (growth - 1) * Math.min(1, days * HOURS_A_DAY)
  return Math.max(free, tolerated * usual * ownGrowth)
}

/** Proofs of repeat sources a minute above which a site counts as under attack; grows with the first-time visitors. */
export function siteBudget(repeat: Rates, first: Rates, expected: number, policy: DifficultyPolicy): number {
  return policy.tolerated * Math.max(policy.usualMin, repeat.usual, expected) * growthOf(first, policy)
}

export function isFlood({ recent, usual }: Rates, { tolerated, usualMin }: DifficultyPolicy): boolean {
  return recent >= tolerated * Math.max(usualMin, usual)
}

/**
 * Adds an accepted proof, after `fadeAll`.
 *
 * @param accepted proofs of its address in the last minutes, before this one
 * @param draw evenly distributed integer from the nonce: picks which proofs of quiet networks are counted
 * @param shards of the store. Each keeps its own meters for all traffic, sites and wide networks and sees one proof in
 * `shards`, so it counts that proof `shards` times
 */
export function addProof(
  meters: Meters,
  { isV4, expected, isInTime }: ProofSource,
  accepted: number,
  draw: number,
  shards = 1,
): void {
  const policy = DEFAULT_POLICY
  const { networkFastMs, learnsAllMs, quietProofs } = policy
  const { all, site, networks } = meters
  const levels = levelsOf(isV4)
  const ageMs = all.atMs - all.sinceMs
  const ofAll = ratesOf(all, ageMs, networkFastMs)
  const growth = growthOf(ofAll, policy)
  const rates = networks.map(meter => ratesOf(meter, ageMs, networkFastMs))
  const isAbove = rates.map(
    (one, index) => one.recent >= networkBudget(one, levels[index]!.free, growth, policy),
  )
  const isOwnerAbove = isAbove[0] === true

  const { repeat, first } = siteRates(site)
  let isOfAttack = false
  if (accepted >= policy.repeatProofs || isOwnerAbove) {
    isOfAttack = repeat.recent >= siteBudget(repeat, first, expected, policy)
    const isNewSite = Math.max(repeat.days, first.days) * DAY_MS < learnsAllMs
    count(site.repeat, shards, learnedOf(repeat, isOfAttack && !isNewSite))
  } else count(site.first, shards)
  if (isInTime !== undefined) {
    count(site.timed!, shards)
    if (!isInTime) count(site.late!, shards)
  }

  if (networks.length === 0) return
  const isNew = ageMs < learnsAllMs
  for (let level = 0; level < networks.length; level++) {
    const { free } = levels[level]!
    const isQuiet = rates[level]!.recent * quietProofs < free
    if (isQuiet && draw % quietProofs !== 0) continue
    const proofs = (level === 0 ? 1 : shards) * (isQuiet ? quietProofs : 1)
    count(networks[level]!, proofs, learnedOf(rates[level]!, isOfAttack || (isAbove[level]! && !isNew)))
  }
  count(all, shards, learnedOf(ofAll, isFlood(ofAll, policy) && !isNew))
}

function count(meter: Meter, proofs: number, learned = 1): void {
  meter.isChanged = true
  meter.fast += proofs
  meter.slow += proofs * learned
}

/** The share of proofs that is learned: above the budget, as many as usually come. */
function learnedOf({ recent, usual }: Rates, isAbove: boolean): number {
  return isAbove ? Math.min(1, usual / recent) : 1
}

/** After `fadeAll`. */
export function trafficOf(
  { all, site, networks }: Meters,
  { isV4, expected }: ProofSource,
  isKnownNetwork: boolean,
): Traffic {
  const { networkFastMs } = DEFAULT_POLICY
  const levels = levelsOf(isV4)
  const ageMs = all.atMs - all.sinceMs
  const { repeat, first } = siteRates(site)
  return {
    networks: networks.map((meter, index) => {
      const { recent, usual, days } = rounded(ratesOf(meter, ageMs, networkFastMs))
      return { prefixBits: levels[index]!.prefixBits, recent, usual, days }
    }),
    all: rounded(ratesOf(all, ageMs, networkFastMs)),
    siteRepeat: rounded(repeat),
    siteFirst: rounded(first),
    siteExpected: expected,
    isKnownNetwork,
  }
}

/** To thousandths, so that logs and traces show exactly the numbers that decided. */
function rounded({ recent, usual, days }: Rates): Rates {
  return { recent: toThousandths(recent), usual: toThousandths(usual), days: toThousandths(days) }
}

function toThousandths(value: number): number {
  return Math.round(value * 1000) / 1000
}

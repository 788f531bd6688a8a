/**
 * Meters: how many accepted proofs a network, a site or all traffic brings, now and usually.
 * docs/reference/limits.md#difficulty says why they are in the store; store/redis/lua/meters.lua mirrors this file.
 *
 *   | since, Unix seconds 4 | at, Unix ms 8 | fast 4 | slow 8 |     floating-point but `since`; big endian
 *
 * `fast` fades within about a minute (of repeat sources 20 s), `slow` within about a day. Above a budget only the usual rate is
 * learned, or an attack would become usual.
 */

import { DEFAULT_POLICY, type DifficultyPolicy, levelsOf } from './policy.ts'

export interface Meter {
  /** Unix milliseconds of the first proof; never in the future. */
  sinceMs: number
  /** When the counts were last faded. */
  atMs: number
  fast: number
  slow: number
  /** To be written back. */
  isChanged: boolean
}

/** Proofs a minute. */
export interface Rates {
  readonly recent: number
  readonly usual: number
  /** Since the first proof. */
  readonly days: number
}

/**
 * Proofs of repeat sources; and of people who come for the first time in five minutes, from a /24 or /48 within what is free and
 * a wider network within its usual budget, so that no network can raise it alone.
 */
export interface SiteMeters {
  readonly repeat: Meter
  readonly first: Meter
}

/** If the site has a target solve time: proofs of challenges at its base difficulty, and those that took longer. */
export interface SolveMeters {
  readonly timed?: Meter | undefined
  readonly late?: Meter | undefined
}

export interface Meters {
  readonly all: Meter
  readonly site: SiteMeters & SolveMeters
  /** The owner's network, then the wide one; empty if not counted. */
  readonly networks: readonly Meter[]
}

export interface ProofSource {
  readonly isV4: boolean
  /** The operator's estimate of repeat sources' proofs a minute; 0: none. */
  readonly expected: number
  /** undefined without a target solve time, and above the site's base. */
  readonly isInTime?: boolean | undefined
}

export interface NetworkRates extends Rates {
  readonly prefixBits: number
}

export interface Traffic {
  readonly networks: readonly NetworkRates[]
  readonly all: Rates
  readonly siteRepeat: Rates
  readonly siteFirst: Rates
  readonly siteExpected: number
  /** The operator named this network: it adds no bits itself, and an attack on the site costs its visitors one bit at most. */
  readonly isKnownNetwork: boolean
}

const NO_RATES: Rates = { recent: 0, usual: 0, days: 0 }

/** While the store is away. */
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

/** @param isShared of all traffic or a site: if these expired overnight, the store would be new and learn an attack as usual */
export function keptMs({ slow }: Meter, isShared = false): number {
  return isShared ? KEPT_MS_MAX : Math.min(KEPT_MS_MAX, KEPT_MS_A_PROOF * Math.max(1, slow))
}

export function meterNames(siteKey: string, hasSolveTime: boolean): readonly string[] {
  const names = ['m:all', `m:${siteKey}:repeat`, `m:${siteKey}:first`]
  return hasSolveTime ? [...names, `m:${siteKey}:timed`, `m:${siteKey}:late`] : names
}

export function hasSolveMeters(sharedCount: number): boolean {
  return sharedCount > 3
}

/** @param list `meterNames` in their order (`sharedCount` of them), then the networks */
export function metersFrom(list: readonly Meter[], sharedCount: number): Meters {
  const [timed, late] = hasSolveMeters(sharedCount) ? [list[3], list[4]] : []
  return {
    all: list[0]!,
    site: { repeat: list[1]!, first: list[2]!, timed, late },
    networks: list.slice(sharedCount),
  }
}

/** If the clock was set back the counts fade by as much; otherwise they would stand still until it catches up. */
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

/**
 * @param ageMs for how long `slow` was gathered: since the site's first proof, for networks since the first of all traffic. By its
 * own age, a new network's first burst would seem its usual rate
 */
function ratesOf({ fast, slow, atMs, sinceMs }: Meter, ageMs: number, fastMs: number): Rates {
  const { slowMs } = DEFAULT_POLICY
  // As `slow` fades, its count stands for less time than that.
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

/** Traffic as a multiple of the usual. */
export function growthOf({ recent, usual }: Rates, { growthMax, usualMin }: DifficultyPolicy): number {
  return Math.min(growthMax, Math.max(1, recent / Math.max(usualMin, usual)))
}

/** Proofs a minute for free. Grows as first-time visitors do, in a network's first hour only in part. */
export function networkBudget(
  { usual, days }: Rates,
  free: number,
  growth: number,
  { tolerated }: DifficultyPolicy,
): number {
  const ownGrowth = 1 + (growth - 1) * Math.min(1, days * HOURS_A_DAY)
  return Math.max(free, tolerated * usual * ownGrowth)
}

/** Proofs of repeat sources a minute, above which a site is under attack. Grows as first-time visitors do. */
export function siteBudget(
  { usual }: Rates,
  expected: number,
  growth: number,
  { tolerated, usualMin }: DifficultyPolicy,
): number {
  return tolerated * Math.max(usualMin, usual, expected) * growth
}

export function isFlood({ recent, usual }: Rates, { tolerated, usualMin }: DifficultyPolicy): boolean {
  return recent >= tolerated * Math.max(usualMin, usual)
}

/**
 * After `fadeAll`: the wide network's meter as one of its owners' shard has to read it. That shard counted the owner's proofs
 * `shards` times, as if the other shards had as many, but they have none.
 */
export function wideMeter(owner: Meter, wide: Meter, shards: number): Meter {
  if (shards === 1) return wide
  const withoutRepeats = (ofOwner: number, ofWide: number) =>
    Math.max(ofWide / shards, ofWide - (shards - 1) * ofOwner)
  return {
    ...wide,
    fast: withoutRepeats(owner.fast, wide.fast),
    slow: withoutRepeats(owner.slow, wide.slow),
  }
}

/**
 * After `fadeAll`.
 *
 * @param accepted earlier proofs of its address in the last minutes
 * @param draw 0 to 255, evenly distributed and secret: picks which proofs of quiet networks are counted
 * @param shards of the store. Each has its own meters for all traffic, sites and wide networks and sees one proof in `shards`,
 * which counts that many times
 */
export function addProof(
  meters: Meters,
  { isV4, expected, isInTime }: ProofSource,
  accepted: number,
  draw: number,
  shards = 1,
): void {
  const policy = DEFAULT_POLICY
  const { networkFastMs, learnsAllMs } = policy
  const quietProofs = shards === 1 ? policy.quietProofs : policy.quietProofsSharded
  const { all, site, networks } = meters
  const levels = levelsOf(isV4)
  const ageMs = all.atMs - all.sinceMs
  const ofAll = ratesOf(all, ageMs, networkFastMs)
  const { repeat, first } = siteRates(site)
  const growth = growthOf(first, policy)
  const counted = networks.map(meter => ratesOf(meter, ageMs, networkFastMs))
  const rates = counted.slice()
  if (shards > 1 && networks.length > 1)
    rates[1] = ratesOf(wideMeter(networks[0]!, networks[1]!, shards), ageMs, networkFastMs)
  const isAbove = (level: number, growthHere: number) =>
    level < rates.length &&
    rates[level]!.recent >= networkBudget(rates[level]!, levels[level]!.free, growthHere, policy)
  // If a network's flood counted as people who come for the first time, it would excuse itself.
  const isOwnerBusy = rates.length > 0 && rates[0]!.recent >= levels[0]!.free

  const isNewSite = Math.max(repeat.days, first.days) * DAY_MS < learnsAllMs
  let isOfAttack = false
  if (accepted >= policy.repeatProofs || isAbove(0, growth)) {
    isOfAttack = repeat.recent >= siteBudget(repeat, expected, growth, policy)
    const most = isOfAttack ? repeat.usual : siteBudget(repeat, expected, 1, policy)
    count(site.repeat, shards, repeat.recent, isNewSite ? Number.POSITIVE_INFINITY : most)
  } else if (accepted === 0 && !isOwnerBusy && !isAbove(1, 1)) {
    // No faster than repeat sources, or a site that has grown for good would be under attack once this is usual and they are not.
    const most = siteBudget(first, 0, 1, policy)
    count(site.first, shards, first.recent, isNewSite ? Number.POSITIVE_INFINITY : most)
  }
  if (isInTime !== undefined) {
    count(site.timed!, shards)
    if (!isInTime) count(site.late!, shards)
  }

  // The operator's own address (private, loopback) counts for no network, nor for all traffic.
  if (networks.length === 0) return
  const isNew = ageMs < learnsAllMs
  for (let level = 0; level < networks.length; level++) {
    const { free } = levels[level]!
    const isQuiet = rates[level]!.recent * quietProofs < free
    if (isQuiet && draw % quietProofs !== 0) continue
    const proofs = (level === 0 ? 1 : shards) * (isQuiet ? quietProofs : 1)
    const { recent, usual } = counted[level]!
    if (isOfAttack || (isAbove(level, growth) && !isNew)) count(networks[level]!, proofs, recent, usual)
    else if (isAbove(level, 1) && !isNew)
      count(networks[level]!, proofs, recent, networkBudget(counted[level]!, free, 1, policy))
    else count(networks[level]!, proofs)
  }
  if (isFlood(ofAll, policy) && !isNew) count(all, shards, ofAll.recent, ofAll.usual)
  else count(all, shards)
}

/**
 * @param recent of the meter
 * @param most a minute that is learned as usual. What growth excuses is learned up to the usual budget only, or first-time
 * visitors of one network would make the flood of another usual, within hours
 */
function count(meter: Meter, proofs: number, recent = 0, most = Number.POSITIVE_INFINITY): void {
  meter.isChanged = true
  meter.fast += proofs
  meter.slow += recent > most ? (proofs * most) / recent : proofs
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

/** Logs and traces show the very numbers that decided. */
function rounded({ recent, usual, days }: Rates): Rates {
  return { recent: toThousandths(recent), usual: toThousandths(usual), days: toThousandths(days) }
}

function toThousandths(value: number): number {
  return Math.round(value * 1000) / 1000
}

/**
 * Meters: how many accepted proofs a network, a site, or all traffic brings, now and usually. They live in the store, which
 * answers every request with those that decide its price, and adds an accepted proof in the same call. So all workers and
 * hosts decide by the same counts. Unsolved challenges count nowhere: without work, nobody makes challenges harder for others.
 *
 *   | since, Unix seconds 4 | at, Unix ms 8 | fast 4 | slow 8 |     counts are floating-point numbers, big endian
 *
 * `fast` fades within about a minute, `slow` within about a day. What comes above a budget is learned at the usual rate only,
 * or an attack would become usual. A meter is kept for as long as it has something to tell: five minutes for each proof that
 * its slow count knows, at most a week. (store/redis/lua/meters.lua mirrors this file and passes the same tests.)
 */

import { DEFAULT_POLICY, type DifficultyPolicy, levelsOf } from './policy.ts'

export interface Meter {
  /** Of its first proof, Unix milliseconds; never in the future. */
  sinceMs: number
  /** When the counts were last brought up to date. */
  atMs: number
  fast: number
  slow: number
  /** Whether a proof was counted since it was read, so that it must be written. */
  isChanged: boolean
}

/** Proofs a minute. */
export interface Rates {
  readonly recent: number
  readonly usual: number
  /** Days since the first proof. */
  readonly days: number
}

/** Of a site, apart: proofs of repeat sources, and of all others. */
export interface SiteMeters {
  readonly repeat: Meter
  readonly first: Meter
}

/** Of a site with a solving time: proofs at its base, and those of them that took longer. */
export interface SolveMeters {
  readonly timed?: Meter | undefined
  readonly late?: Meter | undefined
}

/** The meters of one request. */
export interface Meters {
  readonly all: Meter
  readonly site: SiteMeters & SolveMeters
  /** The owner's network and the wide one; empty where no network is counted. */
  readonly networks: readonly Meter[]
}

/** What is known of a proof's source before the store is asked. */
export interface ProofSource {
  readonly isV4: boolean
  /** Proofs a minute of repeat sources that the operator expects of the site; 0 if nothing is said. */
  readonly expected: number
  /** Whether the proof came within the site's solving time; undefined if nobody asks. */
  readonly isInTime?: boolean | undefined
}

/** A network around an address. */
export interface NetworkRates extends Rates {
  readonly prefixBits: number
}

/** What the store's meters say of a request. */
export interface Traffic {
  /** Those around the address; empty if none is metered. */
  readonly networks: readonly NetworkRates[]
  readonly all: Rates
  readonly siteRepeat: Rates
  readonly siteFirst: Rates
  /** Proofs a minute of repeat sources that the operator expects of the site. */
  readonly siteExpected: number
  /** The operator says that many people share the network: it costs them nothing, and an attack on the site one bit at most. */
  readonly isKnownNetwork: boolean
}

const NO_RATES: Rates = { recent: 0, usual: 0, days: 0 }

/** Where the store is away, and nothing is known. */
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

/** @returns the meter at this offset, new if there are zeros */
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

/** How long a meter is kept after its last proof, in milliseconds. */
export function keptMs({ slow }: Meter): number {
  return Math.min(KEPT_MS_MAX, KEPT_MS_A_PROOF * Math.max(1, slow))
}

/** Names of the meters that all requests to a site share: of all traffic, and of the site. */
export function meterNames(siteKey: string, hasSolveTime: boolean): readonly string[] {
  const names = ['m:all', `m:${siteKey}:repeat`, `m:${siteKey}:first`]
  return hasSolveTime ? [...names, `m:${siteKey}:timed`, `m:${siteKey}:late`] : names
}

/** @param list the `sharedCount` of `meterNames` in their order, then those of the networks */
export function metersFrom(list: readonly Meter[], sharedCount: number): Meters {
  const [timed, late] = sharedCount > 3 ? [list[3], list[4]] : []
  return {
    all: list[0]!,
    site: { repeat: list[1]!, first: list[2]!, timed, late },
    networks: list.slice(sharedCount),
  }
}

/** Brings the counts up to date. If the clock was set back, they fade by as much: no count stands still until it catches up. */
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

/** @param ageMs over which the slow count was gathered: the age of the memory of all traffic, or of the site's */
function ratesOf({ fast, slow, atMs, sinceMs }: Meter, ageMs: number, fastMs: number): Rates {
  const { slowMs } = DEFAULT_POLICY
  const gatheredMs = Math.max(MINUTE_MS, slowMs * (1 - Math.exp(-ageMs / slowMs)))
  return {
    recent: (fast * MINUTE_MS) / fastMs,
    usual: (slow * MINUTE_MS) / gatheredMs,
    days: (atMs - sinceMs) / DAY_MS,
  }
}

/** Of a site's sources. */
export function siteRates({ repeat, first }: SiteMeters): { readonly repeat: Rates; readonly first: Rates } {
  const ageMs = repeat.atMs - Math.min(repeat.sinceMs, first.sinceMs)
  const { networkFastMs, siteFastMs } = DEFAULT_POLICY
  return { repeat: ratesOf(repeat, ageMs, siteFastMs), first: ratesOf(first, ageMs, networkFastMs) }
}

/** How many times the usual traffic comes now; at least 1. */
export function growthOf({ recent, usual }: Rates, { growthMax, usualMin }: DifficultyPolicy): number {
  return Math.min(growthMax, Math.max(1, recent / Math.max(usualMin, usual)))
}

/** Proofs a minute up to which a network costs nothing. On a busy day one that is known for an hour may bring more. */
export function networkBudget(
  { usual, days }: Rates,
  free: number,
  growth: number,
  { tolerated }: DifficultyPolicy,
): number {
  const ownGrowth = 1 + (growth - 1) * Math.min(1, days * HOURS_A_DAY)
  return Math.max(free, tolerated * usual * ownGrowth)
}

/** Proofs a minute of repeat sources up to which a site is not under attack: more while more people come for the first time. */
export function siteBudget(repeat: Rates, first: Rates, expected: number, policy: DifficultyPolicy): number {
  return policy.tolerated * Math.max(policy.usualMin, repeat.usual, expected) * growthOf(first, policy)
}

export function isFlood({ recent, usual }: Rates, { tolerated, usualMin }: DifficultyPolicy): boolean {
  return recent >= tolerated * Math.max(usualMin, usual)
}

/**
 * Adds an accepted proof to meters that are up to date.
 *
 * @param accepted proofs of its address in the last minutes, before this one
 * @param draw evenly distributed integer, from the nonce: decides which proofs of quiet networks are counted
 * @param shards of the store: of what each counts apart (all traffic, sites, wide networks), one sees one proof in so many, and
 *   counts it for so many
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
    count(site.repeat, shards, repeat, isOfAttack && !isNewSite)
  } else count(site.first, shards, first, false)
  if (isInTime !== undefined) {
    count(site.timed!, shards, first, false)
    if (!isInTime) count(site.late!, shards, first, false)
  }

  if (networks.length === 0) return
  const isNew = ageMs < learnsAllMs
  for (let level = 0; level < networks.length; level++) {
    const { free } = levels[level]!
    const isQuiet = rates[level]!.recent * quietProofs < free
    if (isQuiet && draw % quietProofs !== 0) continue
    const proofs = (level === 0 ? 1 : shards) * (isQuiet ? quietProofs : 1)
    count(networks[level]!, proofs, rates[level]!, isOfAttack || (isAbove[level]! && !isNew))
  }
  count(all, shards, ofAll, isFlood(ofAll, policy) && !isNew)
}

/** Above the budget, proofs are learned at the usual rate. */
function count(meter: Meter, proofs: number, { recent, usual }: Rates, isAbove: boolean): void {
  meter.isChanged = true
  meter.fast += proofs
  meter.slow += isAbove ? proofs * Math.min(1, usual / recent) : proofs
}

/** What meters that are up to date say of a request. */
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

/** To thousandths, so that logs and traces tell the very numbers that decide. */
function rounded({ recent, usual, days }: Rates): Rates {
  return { recent: toThousandths(recent), usual: toThousandths(usual), days: toThousandths(days) }
}

function toThousandths(value: number): number {
  return Math.round(value * 1000) / 1000
}

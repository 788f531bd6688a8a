/**
 * Records what happened in a scenario, with a time line of ten-second bins. Computes the figures: the waits of people, and the
 * successes and costs of attackers.
 */

import type { PuzzleName } from '../../src/protocol/proof.ts'
import { grouped, meanOf } from '../report/report.ts'
import { type Attack, POPULATIONS, PRICES, type Scenario } from './scenario.ts'

export const BIN_MS = 10_000

type Bin = ReturnType<typeof emptyBin>

const emptyBin = () => ({ peopleBits: 0, peopleChallenges: 0, bitsMax: 0, accepted: 0 })

interface Visit {
  readonly people: string
  readonly device: string
  readonly atMs: number
  /** Time from the first request to the token; undefined if the person left. */
  readonly delayMs: number | undefined
  /** The part of it that the same luck would not have waited at the base. */
  readonly addedMs: number | undefined
  readonly wasLimited: boolean
  /** Bits of the last challenge; undefined if there was none. */
  readonly bits: number | undefined
  readonly score: number
}

type AttackCount = ReturnType<typeof newCount>

const newCount = (attack: Attack) => ({ attack, asked: 0, refused: 0, dropped: 0, hashes: 0, accepted: 0 })

export class Measure {
  readonly visits: Visit[] = []
  readonly attacks = new Map<string, AttackCount>()
  readonly bins: Bin[] = []
  ourMicroseconds = 0
  readonly puzzle: PuzzleName

  constructor(puzzle: PuzzleName) {
    this.puzzle = puzzle
  }

  bin(nowMs: number): Bin {
    const index = Math.floor(nowMs / BIN_MS)
    while (this.bins.length <= index) this.bins.push(emptyBin())
    return this.bins[index]!
  }

  issuedToPerson(nowMs: number, bits: number): void {
    const bin = this.bin(nowMs)
    bin.peopleBits += bits
    bin.peopleChallenges++
    bin.bitsMax = Math.max(bin.bitsMax, bits)
  }

  ofAttack(attack: Attack): AttackCount {
    const known = this.attacks.get(attack.name)
    if (known !== undefined) return known
    const count = newCount(attack)
    this.attacks.set(attack.name, count)
    return count
  }

  /** Adds a request to what the service's own processors do. */
  served(kind: 'challenge' | 'verify'): void {
    this.ourMicroseconds += PRICES.ourMicroseconds[kind][this.puzzle]
  }
}

/** @param sorted ascending, not empty */
function quantileOf(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))]!
}

export type AttackFigures = ReturnType<typeof attackFigures>
export type Figures = ReturnType<typeof figuresOf>

const MINUTE_MS = 60_000

export function figuresOf(scenario: Scenario, measure: Measure) {
  const [from, to] = scenario.measured ?? [0, scenario.minutes]
  const { puzzle } = measure
  const visits = measure.visits.filter(({ atMs }) => atMs >= from * MINUTE_MS && atMs < to * MINUTE_MS)
  const bins = measure.bins.slice((from * MINUTE_MS) / BIN_MS, (to * MINUTE_MS) / BIN_MS)
  const challenges = sum(bins.map(bin => bin.peopleChallenges))
  const attacks = [...measure.attacks.values()]
  const dollars = sum(attacks.map(count => sum(Object.values(dollarsOf(count, puzzle)))))
  const hashes = sum(attacks.map(count => count.hashes))
  const addedSeconds = sum(visits.map(addedBy))
  return {
    all: delaysOf(visits),
    byPeople: delaysBy(visits, 'people'),
    byDevice: delaysBy(visits, 'device'),
    /** Bits of people's challenges: the mean, and the highest of all. */
    meanBits: challenges === 0 ? 0 : sum(bins.map(bin => bin.peopleBits)) / challenges,
    bitsMax: Math.max(0, ...bins.map(bin => bin.bitsMax)),
    attacks: Object.fromEntries(attacks.map(count => [count.attack.name, attackFigures(count, puzzle)])),
    /** Attackers' processor time (native code) over ours; undefined without work. */
    workRatio: hashes === 0 ? undefined : hashes / PRICES.threadMhs[puzzle] / measure.ourMicroseconds,
    /** Seconds that all people waited longer than at the base, for each dollar of the attackers. */
    secondsPerDollar: dollars === 0 ? undefined : addedSeconds / dollars,
    recoverySeconds: recovery(scenario, measure, 0.5),
    baseSeconds: recovery(scenario, measure, 0),
    overshootBits: overshoot(scenario, measure),
    collateral: collateralOf(scenario, measure.visits),
  }
}

/** Seconds; a visit that was given up counts with all its patience. */
function addedBy({ addedMs = POPULATIONS.patienceSeconds * 1000 }: Visit): number {
  return addedMs / 1000
}

function delaysOf(visits: readonly Visit[]) {
  const shareOf = (matches: (visit: Visit) => boolean) =>
    visits.length === 0 ? 0 : visits.filter(matches).length / visits.length
  return {
    visits: visits.length,
    ...quantilesOf(visits.map(({ delayMs }) => delayMs)),
    added: quantilesOf(visits.map(({ addedMs }) => addedMs)),
    limited: shareOf(({ wasLimited }) => wasLimited),
    gone: shareOf(({ delayMs }) => delayMs === undefined),
  }
}

/** Seconds; undefined if there is no time. */
function quantilesOf(times: readonly (number | undefined)[]) {
  const seconds = times.flatMap(ms => (ms === undefined ? [] : [ms / 1000])).sort((a, b) => a - b)
  const at = (share: number) => (seconds.length === 0 ? undefined : quantileOf(seconds, share))
  return { p50: at(0.5), p95: at(0.95), p99: at(0.99) }
}

/**
 * What people have of the attacks: those who share the attackers' addresses, or all if nobody does. Means while the attacks last,
 * less those before.
 */
function collateralOf({ attacks = [] }: Scenario, visits: readonly Visit[]) {
  const [from, to] = spanOf(attacks)
  const shared = new Set(attacks.flatMap(({ shares }) => shares ?? []))
  const neighbours = visits.filter(({ people }) => shared.size === 0 || shared.has(people))
  const before = neighbours.filter(({ atMs }) => atMs < from)
  const during = neighbours.filter(({ atMs }) => atMs >= from && atMs < to)
  if (before.length === 0 || during.length === 0) return undefined
  const rise = (of: (visit: Visit) => number | undefined) => {
    const [old, now] = [before, during].map(some => meanOf(some.flatMap(visit => of(visit) ?? [])))
    return now! - old!
  }
  return {
    /** Seconds, while the attacks last. */
    p95: quantilesOf(during.map(({ delayMs }) => delayMs)).p95,
    bits: rise(({ bits }) => bits),
    score: rise(({ delayMs, score }) => (delayMs === undefined ? undefined : score)),
    gone: rise(({ delayMs }) => (delayMs === undefined ? 1 : 0)),
  }
}

/** Milliseconds from the first attack's start to the last one's end. */
function spanOf(attacks: Scenario['attacks'] & object): readonly [number, number] {
  const starts = attacks.map(({ from }) => from * MINUTE_MS)
  return [Math.min(...starts), Math.max(...attacks.map(({ to }) => to * MINUTE_MS))]
}

function delaysBy(visits: readonly Visit[], key: 'people' | 'device') {
  const groups = grouped(visits, visit => visit[key])
  const entries = groups.map(group => [group[0]![key], delaysOf(group)] as const)
  return Object.fromEntries<ReturnType<typeof delaysOf>>(entries)
}

function dollarsOf({ attack, hashes, asked, accepted }: AttackCount, puzzle: PuzzleName) {
  const { threads = 0, gpus = 0 } = attack
  const { threadMhs, gpuMhs, threadDollarsPerHour, gpuDollarsPerHour, bytesPerToken } = PRICES
  const price = PRICES.addresses[attack.address]!
  const rate = threads * threadMhs[puzzle] + gpus * gpuMhs[puzzle]
  const hours = rate === 0 ? 0 : hashes / 1e6 / rate / 3600
  const rounds = Math.max(asked, accepted)
  return {
    cpu: hours * threads * threadDollarsPerHour,
    gpu: hours * gpus * gpuDollarsPerHour,
    addresses: (price.dollarsPerHour * attack.addresses.addresses * (attack.to - attack.from)) / 60,
    bytes: (rounds * bytesPerToken * price.dollarsPerGb) / 1e9,
  }
}

function attackFigures(count: AttackCount, puzzle: PuzzleName) {
  const { attack, asked, refused, dropped, accepted } = count
  const per1000 = (dollars: number) => (accepted === 0 ? Number.NaN : (1000 * dollars) / accepted)
  const costs = Object.entries(dollarsOf(count, puzzle)).map(([name, dollars]) => [name, per1000(dollars)])
  return {
    asked,
    refused,
    dropped,
    accepted,
    acceptedPerMinute: accepted / (attack.to - attack.from),
    /** Dollars per 1,000 accepted tokens. */
    cost: Object.fromEntries(costs) as ReturnType<typeof dollarsOf>,
  }
}

function meanBitsIn({ bins }: Measure, fromBin: number, toBin: number): number | undefined {
  const some = bins.slice(Math.max(0, fromBin), toBin)
  const challenges = sum(some.map(bin => bin.peopleChallenges))
  return challenges === 0 ? undefined : sum(some.map(bin => bin.peopleBits)) / challenges
}

const BINS_PER_MINUTE = MINUTE_MS / BIN_MS

function binsOf(attacks: Scenario['attacks'] & object): readonly [number, number] {
  const [from, to] = spanOf(attacks)
  return [Math.floor(from / BIN_MS), Math.ceil(to / BIN_MS)]
}

/** Mean bits of each run of so many bins in which people came. */
function meansOf(measure: Measure, fromBin: number, toBin: number, length: number): number[] {
  const count = Math.max(0, Math.ceil((toBin - fromBin) / length))
  const starts = Array.from({ length: count }, (_, index) => fromBin + index * length)
  return starts.flatMap(start => meanBitsIn(measure, start, Math.min(toBin, start + length)) ?? [])
}

/**
 * Seconds from the end of the last attack, or its last token, until people's mean bits stay as before the attack. Means
 * are over the minute from each ten seconds on. "As before" is within the tolerance of the mean, or of the worst ten seconds if
 * these were worse: ten seconds after the attack are worse still by chance, in one run of two.
 */
function recovery({ attacks = [], minutes }: Scenario, measure: Measure, tolerance: number) {
  if (attacks.length === 0) return undefined
  const [first, endOfRequests] = binsOf(attacks)
  // Hard challenges keep an attacker's processors busy for minutes more.
  const end = Math.max(endOfRequests, measure.bins.findLastIndex(({ accepted }) => accepted > 0) + 1)
  const last = minutes * BINS_PER_MINUTE
  const quietBits = meanBitsIn(measure, 0, first)
  if (end >= last || quietBits === undefined) return undefined
  const most = Math.max(quietBits + tolerance, ...meansOf(measure, 0, first, 1))
  for (let bin = last - BINS_PER_MINUTE; bin >= end; bin--)
    if ((meanBitsIn(measure, bin, bin + BINS_PER_MINUTE) ?? 0) > most)
      return ((bin + 1 - end) * BIN_MS) / 1000
  return 0
}

/** Bits of people in the worst minute of the attacks, above the mean of their second half. */
function overshoot({ attacks = [] }: Scenario, measure: Measure): number | undefined {
  const [first, end] = attacks.length === 0 ? [0, 0] : binsOf(attacks)
  const settled = meanBitsIn(measure, Math.ceil((first + end) / 2), end)
  const minutes = meansOf(measure, first, end, BINS_PER_MINUTE)
  return settled === undefined ? undefined : Math.max(...minutes) - settled
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}

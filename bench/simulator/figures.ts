/**
 * Records what happened in a scenario, with a time line of ten-second bins. Computes the figures: the waits of people, and the
 * successes and costs of attackers.
 */

import type { PuzzleName } from '../../src/protocol/proof.ts'
import { grouped, meanOf, sumOf } from '../report/report.ts'
import { type Attack, PRICES, type Scenario } from './scenario.ts'

const BIN_MS = 10_000
export const BINS_PER_MINUTE = 60_000 / BIN_MS

type Bin = ReturnType<typeof emptyBin>

/** Bits of people's challenges as a sum, and the highest of them; tokens that attackers got. */
const emptyBin = () => ({ peopleBits: 0, peopleChallenges: 0, bitsMax: 0, attackTokens: 0 })

interface Visit {
  readonly people: string
  readonly device: string
  readonly atMs: number
  /** Time from the first request to the token; undefined if the person left. */
  readonly delayMs: number | undefined
  readonly wasLimited: boolean
  /** Bits of the last challenge; undefined if there was none. */
  readonly bits: number | undefined
  readonly score: number
}

type AttackCount = ReturnType<typeof newCount>

/** Challenges asked for; refused requests; challenges given up as too hard or too late; hashes of paid processors, not of bots' browsers; tokens. */
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

export type AttackFigures = ReturnType<typeof attackFigures>
export type Figures = ReturnType<typeof figuresOf>

const MINUTE_MS = 60_000

export function figuresOf(scenario: Scenario, measure: Measure) {
  const [from, to] = scenario.measured ?? [0, scenario.minutes]
  const { puzzle } = measure
  const visits = measure.visits.filter(({ atMs }) => atMs >= from * MINUTE_MS && atMs < to * MINUTE_MS)
  const bins = measure.bins.slice((from * MINUTE_MS) / BIN_MS, (to * MINUTE_MS) / BIN_MS)
  const challenges = sumOf(bins.map(bin => bin.peopleChallenges))
  const attacks = [...measure.attacks.values()]
  const hashes = sumOf(attacks.map(count => count.hashes))
  return {
    all: delaysOf(visits),
    byPeople: delaysBy(visits, 'people'),
    byDevice: delaysBy(visits, 'device'),
    /** Bits of people's challenges: the mean, and the highest of all. */
    meanBits: challenges === 0 ? 0 : sumOf(bins.map(bin => bin.peopleBits)) / challenges,
    bitsMax: Math.max(0, ...bins.map(bin => bin.bitsMax)),
    attacks: Object.fromEntries(attacks.map(count => [count.attack.name, attackFigures(count, puzzle)])),
    /** Attackers' processor time (native code) over ours; undefined without work. */
    workRatio: hashes === 0 ? undefined : hashes / PRICES.threadMhs[puzzle] / measure.ourMicroseconds,
    /** Until people's bits are as before the attack but for half a bit; then until they are no more than before. */
    recoverySeconds: recovery(scenario, measure, 0.5),
    fullRecoverySeconds: recovery(scenario, measure, 0),
    collateral: collateralOf(scenario, measure.visits),
  }
}

function delaysOf(visits: readonly Visit[]) {
  const shareOf = (matches: (visit: Visit) => boolean) =>
    visits.length === 0 ? 0 : visits.filter(matches).length / visits.length
  return {
    visits: visits.length,
    ...quantilesOf(visits.map(({ delayMs }) => delayMs)),
    limited: shareOf(({ wasLimited }) => wasLimited),
    gone: shareOf(({ delayMs }) => delayMs === undefined),
  }
}

/** Seconds; undefined if there is no time. */
function quantilesOf(times: readonly (number | undefined)[]) {
  const seconds = times.flatMap(ms => (ms === undefined ? [] : [ms / 1000])).sort((a, b) => a - b)
  const at = (share: number) => seconds[Math.min(seconds.length - 1, Math.floor(share * seconds.length))]
  return { p50: at(0.5), p95: at(0.95), p99: at(0.99) }
}

/**
 * What the attacks do to people: to those who share the attackers' addresses, or to all if nobody does. Means while the attacks last,
 * less those before.
 */
function collateralOf({ attacks = [] }: Scenario, visits: readonly Visit[]) {
  if (attacks.length === 0) return undefined
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
  const entries = grouped(visits, visit => visit[key]).map(same => [same[0]![key], delaysOf(same)] as const)
  return Object.fromEntries<ReturnType<typeof delaysOf>>(entries)
}

function attackFigures(count: AttackCount, puzzle: PuzzleName) {
  const { attack, hashes, asked, refused, dropped, accepted } = count
  const { threads = 0, gpus = 0, from, to } = attack
  const { threadMhs, gpuMhs, threadDollarsPerHour, gpuDollarsPerHour, bytesPerToken } = PRICES
  const price = PRICES.addresses[attack.address]!
  const rate = threads * threadMhs[puzzle] + gpus * gpuMhs[puzzle]
  const hours = rate === 0 ? 0 : hashes / 1e6 / rate / 3600
  const per1000 = (dollars: number) => (accepted === 0 ? Number.NaN : (1000 * dollars) / accepted)
  return {
    asked,
    refused,
    dropped,
    accepted,
    acceptedPerMinute: accepted / (to - from),
    /** Dollars per 1,000 accepted tokens. */
    cost: {
      cpu: per1000(hours * threads * threadDollarsPerHour),
      gpu: per1000(hours * gpus * gpuDollarsPerHour),
      addresses: per1000((price.dollarsPerHour * attack.addresses.addresses * (to - from)) / 60),
      bytes: per1000((asked * bytesPerToken * price.dollarsPerGb) / 1e9),
    },
  }
}

function meanBitsIn({ bins }: Measure, fromBin: number, toBin: number): number | undefined {
  const some = bins.slice(fromBin, toBin)
  const challenges = sumOf(some.map(bin => bin.peopleChallenges))
  return challenges === 0 ? undefined : sumOf(some.map(bin => bin.peopleBits)) / challenges
}

/**
 * Seconds from the end of the last attack, or its last token, until people's mean bits stay as before the attack: at most the mean
 * before it plus the tolerance, or the mean of the worst ten seconds before it if that is more. Later means are over a minute from each
 * ten seconds on, because single ten seconds exceed that by chance in one run of two.
 *
 * @returns Infinity if the scenario's last minute is still harder; undefined if there is nothing to compare
 */
function recovery({ attacks = [], minutes }: Scenario, measure: Measure, toleranceBits: number) {
  if (attacks.length === 0) return undefined
  const [fromMs, toMs] = spanOf(attacks)
  const attackBin = Math.floor(fromMs / BIN_MS)
  // Hard challenges keep an attacker's processors busy for minutes more.
  const lastToken = measure.bins.findLastIndex(({ attackTokens }) => attackTokens > 0)
  const overBin = Math.max(Math.ceil(toMs / BIN_MS), lastToken + 1)
  const endBin = minutes * BINS_PER_MINUTE
  const quietBits = meanBitsIn(measure, 0, attackBin)
  if (overBin >= endBin || quietBits === undefined) return undefined
  const quiet = measure.bins.slice(0, attackBin).flatMap((_, bin) => meanBitsIn(measure, bin, bin + 1) ?? [])
  const most = Math.max(quietBits + toleranceBits, ...quiet)
  const isHarder = (bin: number) => (meanBitsIn(measure, bin, bin + BINS_PER_MINUTE) ?? 0) > most
  const lastBin = endBin - BINS_PER_MINUTE
  if (isHarder(lastBin)) return Number.POSITIVE_INFINITY
  // Goes back from the scenario's end: the last minute that is harder than before the attack ends the recovery.
  for (let bin = lastBin; bin >= overBin; bin--)
    if (isHarder(bin)) return ((bin + 1 - overBin) * BIN_MS) / 1000
  return 0
}

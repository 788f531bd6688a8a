/**
 * Where accepted proofs come from: what a worker knows of the networks around addresses. A worker counts the proofs that it
 * accepts, and once a second exchanges the counts for those of all workers and hosts (networks.ts, store/load-tracker.ts).
 * Unsolved challenges do not count, so nobody makes challenges harder for others without work.
 *
 * A network that brings more than its budget pays: one bit for each doubling above. A network with history has neighbours of
 * whoever exceeds the budget, and they pay one bit at most, until the excess is beyond what its history speaks for.
 */

import { type Address, AddressSet, isV4 } from './address.ts'
import { spread } from './bytes.ts'
import {
  budgetOf,
  type NetworkAnswer,
  type NetworkRates,
  type NetworkReport,
  NO_RATES,
  RECENT_MS,
} from './networks.ts'
import { DEFAULT_POLICY, type DifficultyPolicy, type NetworkLevel } from './policy.ts'

/** Lengths of prefixes that one owner usually holds. */
const OWNERS: readonly number[] = [24, 48]
const OPERATORS_OWN = new AddressSet(
  '127.0.0.0/8 10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 100.64.0.0/10 169.254.0.0/16 ::1 fc00::/7 fe80::/10'.split(
    ' ',
  ),
)

export function isOperatorsOwn(address: Address): boolean {
  return OPERATORS_OWN.has(address)
}

/** What is known of one network around an address. */
export interface LevelRates extends NetworkRates {
  readonly prefixBits: number
}

/** What is known of the networks around an address, and of all networks together. */
export interface NetworkView {
  /** Those with proofs, of the levels of the policy. */
  readonly levels: readonly LevelRates[]
  readonly all: NetworkRates
}

export interface Source {
  readonly view: NetworkView
  /** What its networks ask for: the most that one of them asks for. */
  readonly networkBits: number
  /** Length of that network's prefix; 0 if none asks for any. */
  readonly networkPrefix: number
  /** Accepted proofs of that network within about a minute. */
  readonly networkProofs: number
  /** The most that networks and load together may cost: less where its owner's network has history. */
  readonly historyBits: number
  /** Whether its owner's network brings more than its budget. */
  readonly isOverBudget: boolean
}

/** Of an address whose networks were never seen. */
export const NEW_SOURCE: Source = {
  view: { levels: [], all: NO_RATES },
  networkBits: 0,
  networkPrefix: 0,
  networkProofs: 0,
  historyBits: Number.POSITIVE_INFINITY,
  isOverBudget: false,
}

/** Of a network that is known to be many people: they pay for no network, and next to nothing for the load of their site. */
export const MANY_PEOPLE: Source = { ...NEW_SOURCE, historyBits: 1 }

export function sourceOf(view: NetworkView, policy: DifficultyPolicy = DEFAULT_POLICY): Source {
  const { levels, all } = view
  let networkBits = 0
  let networkPrefix = 0
  let networkProofs = 0
  let historyBits = Number.POSITIVE_INFINITY
  let isOverBudget = false
  for (const { prefixBits, recent, usual, days } of levels) {
    const isLevel = (level: NetworkLevel) => level.prefixBits === prefixBits
    const level = policy.networksV4.find(isLevel) ?? policy.networksV6.find(isLevel)
    if (level === undefined) continue
    const budget = budgetOf({ usual, days }, level.free, all)
    const allowed = historyBitsOf({ recent, usual, days }, policy)
    if (OWNERS.includes(prefixBits)) {
      historyBits = Math.ceil(allowed)
      isOverBudget = recent > budget
    }
    const asked = recent > budget ? Math.min(level.slope * Math.log2(recent / budget), allowed) : 0
    if (asked <= networkBits) continue
    networkBits = asked
    networkPrefix = prefixBits
    networkProofs = recent
  }
  const isFlood = all.recent > policy.loadTolerated * Math.max(60 * policy.usualRateMin, all.usual)
  const most = isFlood ? policy.networkBitsMax : policy.networkBitsQuietMax
  networkBits = Math.min(most, Math.ceil(networkBits))
  return { view, networkBits, networkPrefix, networkProofs, historyBits, isOverBudget }
}

/**
 * The most that its networks and the load may cost people of a network with history. Who asks brings one proof at least, also
 * where a worker's count has faded: history that speaks for less says nothing.
 */
function historyBitsOf(
  { recent, usual, days }: NetworkRates,
  { historySpeaksFor }: DifficultyPolicy,
): number {
  const spoken = historySpeaksFor * Math.min(1, days) ** 2 * usual
  return spoken > 0 ? 1 + Math.max(0, Math.log2(Math.max(1, recent) / spoken)) : Number.POSITIVE_INFINITY
}

interface Known {
  tag: number
  free: number
  pending: number
  /** Those of the pending that are no load of an attack. */
  peaceful: number
  /** The store's last, and when that came. Recent proofs fade from then on. */
  answer: NetworkRates
  atMs: number
  /** Whether that was above its budget. */
  isOver: boolean
}

/** Networks that a worker remembers at least, and at most twice as many; of each some 350 bytes. */
const KNOWN_MIN = 25_000
/** A network that is met again is asked for again after so long. */
const ASKED_AGAIN_MS = 1000
/** While so many wait to be reported, no more are asked for or remembered: a flood of challenges makes a worker forget nothing. */
const ASKED_MAX = 1000

export class SourceWatch {
  readonly #isOwn: (address: Address) => boolean
  #known = new Map<number, Known>()
  /** Those of before; whoever is met again is moved to the others. */
  #before = new Map<number, Known>()
  #pending = new Set<Known>()
  #proofs = 0
  #all: NetworkRates = NO_RATES

  constructor(isOwn = isOperatorsOwn) {
    this.#isOwn = isOwn
  }

  /**
   * Notes an accepted proof.
   * @param isOfAttack whether the proof is load of an attack
   */
  accepted(address: Address, isOfAttack = false): void {
    if (this.#isOwn(address)) return
    this.#proofs++
    for (const level of levelsOf(address)) {
      const known = this.#knownOf(address, level) ?? this.#added(address, level)
      known.pending++
      if (!isOfAttack) known.peaceful++
      this.#pending.add(known)
    }
  }

  /** The next report asks for its networks. So a worker that issues challenges, and accepts no proof, learns of them too. */
  of(address: Address, nowMs: number): Source {
    if (this.#isOwn(address)) return NEW_SOURCE
    const levels: LevelRates[] = []
    for (const level of levelsOf(address)) {
      const { prefixBits } = level
      const mayAsk = this.#pending.size < ASKED_MAX
      const known = this.#knownOf(address, level) ?? (mayAsk ? this.#added(address, level) : undefined)
      if (known === undefined) continue
      const { answer, pending, atMs } = known
      if (mayAsk && Math.abs(nowMs - atMs) >= ASKED_AGAIN_MS) this.#pending.add(known)
      if (atMs === 0 && pending === 0) continue
      const recent = answer.recent * Math.exp(-Math.max(0, nowMs - atMs) / RECENT_MS) + pending
      levels.push({ ...answer, recent: Math.round(recent * 100) / 100, prefixBits })
    }
    return levels.length === 0 ? NEW_SOURCE : sourceOf({ levels, all: this.#all })
  }

  #knownOf(address: Address, { prefixBits }: NetworkLevel): Known | undefined {
    const tag = tagOf(address, prefixBits)
    const known = this.#known.get(tag)
    if (known !== undefined) return known
    const before = this.#before.get(tag)
    return before && this.#remember(before)
  }

  #added(address: Address, { prefixBits, free }: NetworkLevel): Known {
    const tag = tagOf(address, prefixBits)
    return this.#remember({ tag, free, pending: 0, peaceful: 0, answer: NO_RATES, atMs: 0, isOver: false })
  }

  #remember(known: Known): Known {
    if (this.#known.size >= KNOWN_MIN) {
      this.#before = this.#known
      this.#known = new Map()
    }
    this.#known.set(known.tag, known)
    return known
  }

  /**
   * What to report: at most so many networks, those with the most proofs first. Networks above their budgets are asked for
   * until they are within them, also if this worker sees no proof of theirs.
   */
  report(most: number): {
    proofs: number
    reports: NetworkReport[]
    take: (answer: NetworkAnswer, nowMs: number) => void
  } {
    const urgency = ({ isOver, answer, pending }: Known) => (isOver ? answer.recent : 0) + pending
    const pending = [...this.#pending].sort((a, b) => urgency(b) - urgency(a)).slice(0, most)
    const reports = pending.map(({ tag, free, pending: proofs, peaceful }) => ({
      tag,
      free,
      proofs,
      peaceful,
    }))
    for (const known of pending) known.pending = known.peaceful = 0
    const proofs = this.#proofs
    this.#proofs = 0
    return {
      proofs,
      reports,
      take: ({ all, networks }, nowMs) => {
        this.#all = shortened(all)
        networks.forEach((rates, index) => {
          const known = pending[index]!
          known.answer = shortened(rates)
          known.atMs = nowMs
          known.isOver = rates.recent > budgetOf(rates, known.free, all)
          if (!known.isOver && known.pending === 0) this.#pending.delete(known)
        })
      },
    }
  }
}

/** Names a network: FNV-1a of its bits, spread; never 0. */
export function tagOf(address: Address, prefixBits: number): number {
  const first = isV4(address) ? 12 : 0
  const end = first + (prefixBits >> 3)
  let hash = Math.imul(0x811c9dc5 ^ prefixBits, 0x01000193)
  for (let at = first; at < end; at++) hash = Math.imul(hash ^ address.charCodeAt(at), 0x01000193)
  const rest = prefixBits & 7
  if (rest > 0) hash = Math.imul(hash ^ (address.charCodeAt(end) >> (8 - rest)), 0x01000193)
  return spread(hash) || 1
}

/** With few digits, so that logs and traces tell the very numbers that decide. */
function shortened({ recent, usual, days }: NetworkRates): NetworkRates {
  return {
    recent: Number(recent.toFixed(2)),
    usual: Number(usual.toPrecision(4)),
    days: Number(days.toPrecision(4)),
  }
}

function levelsOf(address: Address): readonly NetworkLevel[] {
  return isV4(address) ? DEFAULT_POLICY.networksV4 : DEFAULT_POLICY.networksV6
}

/**
 * What networks bring, and what they usually bring: one table for all workers and hosts, of fixed size. A network is the
 * IPv4 /24 or /20, or the IPv6 /56, /48 or /40, around an address. The table has its recent accepted proofs, which fade
 * within a minute, and its usual ones, which fade within a day. A site that is ten times as busy, with the same mix of
 * people, finds the same shares, so popularity costs nobody bits (sources.ts).
 *
 *   slot   | tag 4 | since 8 | at 8 | recent 4 | usual 4 |     times are Unix milliseconds; counts are 32-bit floats
 *
 * The first slot is that of all networks together. Two networks that share a slot take turns: the one with more usual proofs
 * stays (Boyer and Moore's majority vote). What a network brings above its budget, or as load of an attack, is not learned, or an
 * attack would become usual. (store/redis/lua/exchange-networks-1.lua mirrors this file and passes the same tests.)
 */

export const SLOTS = 65_536
export const SLOT_BYTES = 28
/** Tag of the first slot. */
export const ALL = 1

export const RECENT_MS = 60_000
export const USUAL_MS = 86_400_000
/** The first hour of a table is learned as it comes. */
export const FREE_MS = 3_600_000
const MINUTE_MS = 60_000
const HOURS_A_DAY = 24

/** A network may bring this multiple of its usual share of the present proofs. */
export const TOLERATED = 4
/** Of the usual proofs of all networks, what a network without history may bring. */
export const NEWCOMER_SHARE = 0.01

/** On a day with so many times the usual visits, each network may bring as many times more. */
export const GROWTH_MAX = 64
/**
 * Above its budget, a network stays what it usually is. Of a flood of all networks, so many times the usual proofs are
 * learned: a day of it doubles what is usual.
 */
const FLOOD_LEARNED = 2
/** Fewer proofs a minute of all networks together are no flood, whatever is usual. */
export const FLOOD_MIN = 30

/** Where the bytes of the table are. */
export interface NetworkTable {
  /** @returns the bytes at an offset; zeros if none were written */
  read(offset: number, length: number): Buffer
  write(offset: number, bytes: Buffer): void
}

/** Accepted proofs of a network that a worker has seen since its last report. */
export interface NetworkReport {
  /** 32 bits, not 0: of prefix and level. */
  readonly tag: number
  /** Proofs a minute that cost a network of this level nothing. */
  readonly free: number
  readonly proofs: number
  /** Those of them that are no load of an attack. Only they may be learned. */
  readonly peaceful: number
}

/** Of one network, or of all together. Proofs a minute. */
export interface NetworkRates {
  readonly recent: number
  readonly usual: number
  /** Days since the network is known; at most those of the table. */
  readonly days: number
}

export const NO_RATES: NetworkRates = { recent: 0, usual: 0, days: 0 }

export interface NetworkAnswer {
  readonly all: NetworkRates
  /** In the order of the reports. */
  readonly networks: readonly NetworkRates[]
}

/** @returns the proofs a minute up to which a network costs nothing: on a good day, more for those that are known for an hour */
export function budgetOf(
  { usual, days }: Pick<NetworkRates, 'usual' | 'days'>,
  free: number,
  all: Pick<NetworkRates, 'recent' | 'usual'>,
): number {
  const growth = all.usual > 0 ? Math.max(1, Math.min(GROWTH_MAX, all.recent / all.usual)) : 1
  const ownGrowth = 1 + (growth - 1) * Math.min(1, days * HOURS_A_DAY)
  return Math.max(free, NEWCOMER_SHARE * all.usual, TOLERATED * usual * ownGrowth)
}

/** @param proofs visits with an accepted proof since the last report, each counted once */
export function reportNetworks(
  table: NetworkTable,
  nowMs: number,
  proofs: number,
  reports: readonly NetworkReport[],
): NetworkAnswer {
  const ageMs = nowMs - (table.read(0, SLOT_BYTES).readDoubleBE(4) || nowMs)
  // Over which usual counts were gathered.
  const windowMinutes = Math.max(1, (USUAL_MS * (1 - Math.exp(-ageMs / USUAL_MS))) / MINUTE_MS)
  const add = (at: number, { tag, free, proofs, peaceful }: NetworkReport, all = NO_RATES): NetworkRates => {
    const slot = Buffer.from(table.read(at * SLOT_BYTES, SLOT_BYTES))
    const elapsedMs = Math.max(0, nowMs - slot.readDoubleBE(12))
    let recent = slot.readFloatBE(20) * Math.exp(-elapsedMs / RECENT_MS)
    let usual = slot.readFloatBE(24) * Math.exp(-elapsedMs / USUAL_MS)
    const isOthers = slot.readUInt32BE(0) !== tag
    const isQuestion = proofs === 0 && at > 0
    const isKept = isOthers && (usual > proofs || isQuestion)
    if (isOthers && !isKept) {
      slot.writeUInt32BE(tag, 0)
      slot.writeDoubleBE(nowMs, 4)
      recent = usual = 0
    }
    const days = (nowMs - slot.readDoubleBE(4)) / USUAL_MS
    const budget = budgetOf({ usual: usual / windowMinutes, days }, free, all)
    const isLearned = ageMs < FREE_MS || recent + proofs <= budget
    const most = ((at === 0 ? FLOOD_LEARNED : 1) * usual * elapsedMs) / MINUTE_MS / windowMinutes
    slot.writeDoubleBE(nowMs, 12) // also if the clock was set back: a later time would stop the fading until then
    slot.writeFloatBE(isKept ? recent : recent + proofs, 20)
    slot.writeFloatBE(isKept ? usual - proofs : usual + (isLearned ? peaceful : Math.min(peaceful, most)), 24)
    table.write(at * SLOT_BYTES, slot)
    if (isKept) return { recent: proofs, usual: 0, days: 0 }
    return { recent: slot.readFloatBE(20), usual: slot.readFloatBE(24) / windowMinutes, days }
  }
  const all = add(0, { tag: ALL, free: TOLERATED * FLOOD_MIN, proofs, peaceful: proofs })
  return { all, networks: reports.map(report => add(1 + (report.tag % SLOTS), report, all)) }
}

/** A table in memory. */
export class NetworkMemory implements NetworkTable {
  readonly #bytes = Buffer.alloc((1 + SLOTS) * SLOT_BYTES)

  read(offset: number, length: number): Buffer {
    return this.#bytes.subarray(offset, offset + length)
  }

  write(offset: number, bytes: Buffer): void {
    bytes.copy(this.#bytes, offset)
  }
}

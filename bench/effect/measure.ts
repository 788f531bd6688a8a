/** What happened in a scenario, as figures and as a time line of ten-second bins. */

import { type Attack, PRICES } from './scenario.ts'

export const BIN_MS = 10_000

export interface Bin {
  peopleBits: number
  peopleChallenges: number
  bitsMax: number
  delaysMs: number[]
  peopleLimited: number
  peopleGone: number
  accepted: number
  attackRefused: number
}

export interface Visit {
  readonly people: string
  readonly device: string
  readonly atMs: number
  /** From the first request to the token; undefined if the person left. */
  readonly delayMs: number | undefined
  /** Of these, what the same luck would not have waited at the base. */
  readonly addedMs: number | undefined
  readonly wasLimited: boolean
  /** Of the last challenge; undefined if there was none. */
  readonly bits: number | undefined
  readonly score: number
}

export interface AttackCount {
  readonly attack: Attack
  asked: number
  refused: number
  dropped: number
  hashes: number
  verified: number
  accepted: number
}

export class Measure {
  readonly visits: Visit[] = []
  readonly attacks = new Map<string, AttackCount>()
  readonly bins: Bin[] = []
  ourMicroseconds = 0

  bin(nowMs: number): Bin {
    const index = Math.floor(nowMs / BIN_MS)
    while (this.bins.length <= index)
      this.bins.push({
        peopleBits: 0,
        peopleChallenges: 0,
        bitsMax: 0,
        delaysMs: [],
        peopleLimited: 0,
        peopleGone: 0,
        accepted: 0,
        attackRefused: 0,
      })
    return this.bins[index]!
  }

  issuedToPerson(nowMs: number, bits: number): void {
    const bin = this.bin(nowMs)
    bin.peopleBits += bits
    bin.peopleChallenges++
    bin.bitsMax = Math.max(bin.bitsMax, bits)
  }

  ended(visit: Visit, nowMs: number): void {
    this.visits.push(visit)
    const bin = this.bin(nowMs)
    if (visit.delayMs === undefined) bin.peopleGone++
    else bin.delaysMs.push(visit.delayMs)
  }

  ofAttack(attack: Attack): AttackCount {
    const known = this.attacks.get(attack.name)
    if (known !== undefined) return known
    const count = { attack, asked: 0, refused: 0, dropped: 0, hashes: 0, verified: 0, accepted: 0 }
    this.attacks.set(attack.name, count)
    return count
  }

  /** Adds a request to what the service's own processors do. */
  served(kind: 'challenge' | 'verify'): void {
    this.ourMicroseconds += PRICES.ourMicroseconds[kind]
  }
}

/** @param sorted ascending, not empty */
export function quantileOf(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))]!
}

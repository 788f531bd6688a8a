/**
 * The state that requests leave behind, in memory, bounded by POWGATE_STATE_MAX_MB.
 *
 *   windows   l:<address>, c:<caller>, k:<API key id>  -> | dead from, seconds 4 | record of domain/address-log or redemption-window |
 *   marks     n:<nonce>, r:<nonce>                     -> | dead from: wall clock, seconds 4 | monotonic clock 4 | claim |
 *   meters    e:<network or site>, e:born...           -> see domain/meters.ts
 *
 * Windows use the monotonic clock, which nothing sets. Marks are redemption records, and used nonces that no address log holds.
 * Tokens expire by the wall clock, which can be set, so a mark is dead only when both clocks say so: no step lets a token be
 * redeemed twice. Values are strings of one-byte characters, because a Buffer takes 100 bytes more each.
 */

import { randomInt } from 'node:crypto'
import { keptMs, type Meter } from '../../domain/meters.ts'
import { uint32Text } from '../wire.ts'

export interface Clocks {
  readonly monotonicMs: () => number
  readonly wallMs: () => number
}

export const SYSTEM_CLOCKS: Clocks = {
  monotonicMs: () => Number(process.hrtime.bigint() / 1_000_000n),
  wallMs: Date.now,
}

/** Bytes of an entry beyond its key and value, and of a whole meter's, as measured with a million. */
const ENTRY_BYTES = 112
const METER_ENTRY_BYTES = 200

export class State {
  epoch = randomInt(2 ** 32)
  readonly windows = new Entries()
  readonly marks = new Entries()
  readonly meters = new SweptMap<Meter>()
  readonly #bytesMax: number

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax
  }

  get bytes(): number {
    return this.windows.bytes + this.marks.bytes + this.meters.size * METER_ENTRY_BYTES
  }

  get isFull(): boolean {
    return this.bytes > this.#bytesMax
  }

  /** If true, no network gets a new meter, because meters alone must never fill the memory. (Those of sites are few.) */
  get isHalfFull(): boolean {
    return this.bytes > this.#bytesMax / 2
  }
}

/** A map whose dead entries are removed in slices, because the store answers nothing meanwhile. All slices over it are a round. */
class SweptMap<Value> extends Map<string, Value> {
  #swept: Iterator<[string, Value]> | undefined
  /** Entries that the present round has yet to see. */
  #left = 0

  /**
   * A round ends after as many entries as there were at its start. The iterator would go on to those that were added since: if entries
   * come faster than it looks at them, it would never return to the start of the map, where the dead are.
   *
   * @param count at least so many entries are looked at, or the ROUND_SLICES-th part of all, if that is more
   * @returns whether the round has ended
   */
  sweep(count: number, isDead: (value: Value) => boolean): boolean {
    if (this.#swept === undefined) {
      this.#swept = this.entries()
      this.#left = this.size
    }
    const slice = Math.max(count, Math.ceil(this.size / ROUND_SLICES))
    for (let seen = 0; seen < slice; seen++) {
      const { value: entry, done } = this.#swept.next()
      if (done === true || this.#left-- === 0) {
        this.#swept = undefined
        return true
      }
      if (isDead(entry[1])) this.delete(entry[0])
    }
    return false
  }
}

class Entries extends SweptMap<string> {
  bytes = 0

  override set(key: string, value: string): this {
    const before = this.get(key)
    this.bytes +=
      before === undefined ? ENTRY_BYTES + key.length + value.length : value.length - before.length
    return super.set(key, value)
  }

  override delete(key: string): boolean {
    const value = this.get(key)
    if (value === undefined) return false
    this.bytes -= ENTRY_BYTES + key.length + value.length
    return super.delete(key)
  }
}

export function isWindowDead(value: string, monotonicMs: number): boolean {
  return uint32At(value, 0) * 1000 <= monotonicMs
}

export function isMarkDead(value: string, wallMs: number, monotonicMs: number): boolean {
  return uint32At(value, 0) * 1000 <= wallMs && uint32At(value, 4) * 1000 <= monotonicMs
}

/** A meter whose time lies ahead, after the clock was set back, is kept for as long as one whose time lies behind. */
export function isMeterDead(meter: Meter, wallMs: number): boolean {
  return Math.abs(wallMs - meter.atMs) >= keptMs(meter)
}

/** The second from which an entry is dead, as four characters. @param ms is rounded up */
export function deadFrom(ms: number): string {
  return uint32Text(Math.ceil(ms / 1000))
}

function uint32At(text: string, at: number): number {
  return (
    text.charCodeAt(at) * 2 ** 24 +
    ((text.charCodeAt(at + 1) << 16) | (text.charCodeAt(at + 2) << 8) | text.charCodeAt(at + 3))
  )
}

const SWEEP_COUNT = 500
/** A round takes 42 s at most. A window lives for a minute, so the dead do not outnumber the living. */
const [ROUND_SLICES, SWEEP_PAUSE_MS] = [600, 70]
const SWEEP_IDLE_MS = 1000

/** Removes the dead among the next entries. @returns the pause until the next call, milliseconds */
export function sweep(state: State, clocks: Clocks, count = SWEEP_COUNT): number {
  const [wallMs, monotonicMs] = [clocks.wallMs(), clocks.monotonicMs()]
  const haveEnded = [
    state.windows.sweep(count, value => isWindowDead(value, monotonicMs)),
    state.marks.sweep(count, value => isMarkDead(value, wallMs, monotonicMs)),
    state.meters.sweep(count, meter => isMeterDead(meter, wallMs)),
  ]
  return haveEnded.every(Boolean) ? SWEEP_IDLE_MS : SWEEP_PAUSE_MS
}

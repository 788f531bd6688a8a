/**
 * The meters (domain/meters.ts), in the database of windows:
 *
 *   | m:all, m:<site>:..., or a<network>m |  -> | dead from, seconds of the monotonic clock 4 | record of domain/meters.ts |
 *
 * A network's meter comes just after its addresses, on a page that the transaction reads and writes anyway.
 */

import type { Database } from 'lmdb'
import { ReusedBytes, writeText } from '../../domain/bytes.ts'
import {
  fadeAll,
  keptMs,
  METER_BYTES,
  type Meter,
  type Meters,
  metersFrom,
  newMeter,
  readMeter,
  writeMeter,
} from '../../domain/meters.ts'
import type { Metering } from '../store.ts'

type Windows = Database<Buffer, Buffer>

/** In a window or a meter. */
export const RECORD_OFFSET = 4
const [COLON, ADDRESS, METER] = [0x3a, 0x61, 0x6d]
const keys = new ReusedBytes()
const reusedValue = Buffer.allocUnsafeSlow(RECORD_OFFSET + METER_BYTES)

/** Each is read once a transaction, and written once if it changed. */
export class TransactionMeters {
  readonly #windows: Windows
  #meters = new Map<string, Meter>()
  /** Networks without a meter when the transaction began, while `isHalfFull`. */
  #unknown = new Set<string>()
  #monotonicMs = 0
  #wallMs = 0
  /** Then no network gets a new meter: meters alone never fill the files. (Sites are bounded.) */
  isHalfFull = false

  constructor(windows: Windows) {
    this.#windows = windows
  }

  begin(monotonicMs: number, wallMs: number): void {
    this.#meters = new Map() // not cleared, as in requests.ts
    if (this.#unknown.size > 0) this.#unknown = new Set()
    this.#monotonicMs = monotonicMs
    this.#wallMs = wallMs
  }

  of({ shared, networks }: Metering): Meters {
    const list: Meter[] = []
    for (const name of shared) list.push(this.#meter(name))
    for (const key of networks) list.push(this.#meter(key))
    const meters = metersFrom(list, shared.length)
    fadeAll(meters, this.#wallMs)
    return meters
  }

  /** Whether one of them gets no meter, so that nobody will know what it brings. */
  leavesOut(networks: readonly string[]): boolean {
    return networks.some(name => this.#unknown.has(name))
  }

  write(): void {
    for (const [name, meter] of this.#meters) {
      if (!meter.isChanged || this.#unknown.has(name)) continue
      const value = valueWith(meter, this.#monotonicMs + keptMs(meter, isShared(name)))
      this.#windows.putSync(keyOf(name), value)
    }
  }

  #meter(name: string): Meter {
    const found = this.#meters.get(name)
    if (found !== undefined) return found
    const value = this.#windows.getBinaryFast(keyOf(name))
    const isThere = value !== undefined && value.readUInt32BE(0) * 1000 > this.#monotonicMs
    const meter = isThere ? readMeter(value, RECORD_OFFSET, this.#wallMs) : newMeter(this.#wallMs)
    if (this.isHalfFull && !isThere && !isShared(name)) this.#unknown.add(name)
    this.#meters.set(name, meter)
    return meter
  }
}

function isShared(name: string): boolean {
  return name.charCodeAt(1) === COLON
}

export function keyOf(name: string): Buffer {
  const isWhole = isShared(name)
  const key = keys.ofLength(isWhole ? name.length : name.length + 2)
  if (isWhole) writeText(key, 0, name)
  else {
    key[0] = ADDRESS
    writeText(key, 1, name)
    key[name.length + 1] = METER
  }
  return key
}

/** undefined for other keys. Networks' names have 8 characters (domain/address-tags.ts). */
export function networkOf(key: string): string | undefined {
  return /^a[\w-]{8}m$/.test(key) ? key.slice(1, -1) : undefined
}

function valueWith(meter: Meter, deadFromMs: number): Buffer {
  reusedValue.writeUInt32BE(Math.ceil(deadFromMs / 1000), 0)
  writeMeter(reusedValue, RECORD_OFFSET, meter)
  return reusedValue
}

export function readMeterOf(windows: Windows, name: string): Meter | undefined {
  const value = windows.getBinaryFast(keyOf(name))
  return value && readMeter(value, RECORD_OFFSET, 0)
}

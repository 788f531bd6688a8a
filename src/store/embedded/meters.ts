/**
 * The meters (domain/meters.ts), in the database of windows:
 *
 *   | e:born:..., e:<site>, or a<network>e |  -> | dead from, seconds of the monotonic clock 4 | record of domain/meters.ts |
 *
 * A network's meter comes just after its addresses, on a page that the transaction reads and writes anyway.
 */

import type { Database } from 'lmdb'
import { ReusedBytes, writeText } from '../../domain/bytes.ts'
import {
  addProof,
  bornBy,
  fadeAll,
  KEPT_MS_MAX,
  keptMs,
  METER_BYTES,
  type Meter,
  type Meters,
  metersFrom,
  newMeter,
  readMeter,
  writeMeter,
} from '../../domain/meters.ts'
import { POLICY } from '../../domain/policy.ts'
import type { Metering } from '../store.ts'

type Windows = Database<Buffer, Buffer>

/** In a window or a meter. */
export const RECORD_OFFSET = 4
const [COLON, ADDRESS, METER] = [0x3a, 0x61, 0x65]
const keys = new ReusedBytes()
const reusedValue = Buffer.allocUnsafeSlow(RECORD_OFFSET + METER_BYTES)

/** Each is read once a transaction, and written once if it changed. */
export class TransactionMeters {
  readonly #windows: Windows
  #meters = new Map<string, Meter>()
  #changed = new Map<string, Meter>()
  #monotonicMs = 0
  #wallMs = 0
  /** Then no network gets a new meter: meters alone never fill the files. (Sites are bounded.) */
  isHalfFull = false

  constructor(windows: Windows) {
    this.#windows = windows
  }

  begin(monotonicMs: number, wallMs: number): void {
    this.#meters = new Map() // not cleared, as in requests.ts
    if (this.#changed.size > 0) this.#changed = new Map()
    this.#monotonicMs = monotonicMs
    this.#wallMs = wallMs
  }

  of({ names }: Metering): Meters {
    const list: Meter[] = []
    for (const name of names) list.push(this.#meter(name))
    const meters = metersFrom(list, this.#wallMs)
    fadeAll(meters, this.#wallMs, POLICY)
    return meters
  }

  /** As `addProof` of the domain; the first proofs say how old the store is. */
  add({ names, free }: Metering, meters: Meters, accepted: number, proofs: 1 | -1): void {
    const { site, networks } = meters
    if (addProof(meters, free, accepted, proofs, POLICY)) this.#changed.set(names[2]!, site)
    for (const [index, meter] of networks.entries()) this.#changed.set(names[3 + index]!, meter)
    for (const name of names.slice(0, 2)) {
      const born = this.#meters.get(name)!
      bornBy(born, this.#wallMs)
      this.#changed.set(name, born)
    }
  }

  write(): void {
    for (const [name, meter] of this.#changed) {
      const keepMs = name.startsWith('e:born') ? KEPT_MS_MAX : keptMs(meter)
      const key = keyOf(name)
      const isNew = this.isHalfFull && !isShared(name) && !this.#windows.doesExist(key)
      if (!isNew) this.#windows.putSync(key, valueWith(meter, this.#monotonicMs + keepMs))
    }
  }

  #meter(name: string): Meter {
    const found = this.#meters.get(name)
    if (found !== undefined) return found
    const value = this.#windows.getBinaryFast(keyOf(name))
    const isThere = value !== undefined && value.readUInt32BE(0) * 1000 > this.#monotonicMs
    const meter = isThere ? readMeter(value, RECORD_OFFSET, this.#wallMs) : newMeter(this.#wallMs)
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

/** undefined for other keys. Networks' names have 8 or 10 characters (domain/address-tags.ts). */
export function networkOf(key: string): string | undefined {
  return /^a(?:[\w-]{8}|[\w-]{10})e$/.test(key) ? key.slice(1, -1) : undefined
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

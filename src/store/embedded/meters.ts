/**
 * The meters (domain/meters.ts) in LMDB. They lie in the database of windows, that of a network just after its addresses: on
 * a page that the same transaction reads and writes anyway.
 *
 *   | m:all, m:<site>:..., or a<network>m |  -> | dead from, seconds of the monotonic clock 4 | record of domain/meters.ts |
 *
 * Like all of the state they are gone after a reboot: the first hour learns anew.
 */

import type { Database } from 'lmdb'
import { ReusedBytes, writeText } from '../../domain/bytes.ts'
import {
  addProof,
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
import { nonceMark } from '../../domain/nonce.ts'
import type { Metering } from '../store.ts'

type Windows = Database<Buffer, Buffer>

const RECORD_OFFSET = 4
const keys = new ReusedBytes()
/** lmdb copies it before it returns. */
const reusedValue = Buffer.allocUnsafeSlow(RECORD_OFFSET + METER_BYTES)

/** Those of one transaction: each is read once, and written once if it changed. */
export class TransactionMeters {
  readonly #windows: Windows
  readonly #meters = new Map<string, Meter>()
  readonly #changed = new Set<string>()
  #monotonicMs = 0
  #wallMs = 0
  /** Networks that have no meter get none, so that meters alone never fill the files. */
  isHalfFull = false

  constructor(windows: Windows) {
    this.#windows = windows
  }

  begin(monotonicMs: number, wallMs: number): void {
    this.#meters.clear()
    this.#changed.clear()
    this.#monotonicMs = monotonicMs
    this.#wallMs = wallMs
  }

  of({ shared, networks }: Metering): Meters {
    const meters = metersFrom(
      shared.map(name => this.#meter(name)),
      networks.map(key => this.#meter(networkName(key))),
    )
    fadeAll(meters, this.#wallMs)
    return meters
  }

  add(meters: Meters, metering: Metering, accepted: number, nonce: string): void {
    const before = meters.networks.map(({ slow }) => slow)
    addProof(meters, { ...metering, accepted, draw: nonceMark(nonce) })
    for (const name of metering.shared) this.#changed.add(name)
    for (const [index, key] of metering.networks.entries())
      if (meters.networks[index]!.slow !== before[index]) this.#changed.add(networkName(key))
  }

  write(): void {
    for (const name of this.#changed) {
      const key = keyOf(name)
      if (this.isHalfFull && this.#windows.getBinaryFast(key) === undefined) continue
      const meter = this.#meters.get(name)!
      this.#windows.putSync(key, valueWith(meter, this.#monotonicMs + keptMs(meter)))
    }
  }

  #meter(name: string): Meter {
    const known = this.#meters.get(name)
    if (known !== undefined) return known
    const value = this.#windows.getBinaryFast(keyOf(name))
    const isThere = value !== undefined && value.readUInt32BE(0) * 1000 > this.#monotonicMs
    const meter = isThere ? readMeter(value, RECORD_OFFSET, this.#wallMs) : newMeter(this.#wallMs)
    this.#meters.set(name, meter)
    return meter
  }
}

/** @param key from `networkKeys` */
function networkName(key: string): string {
  return `a${key}m`
}

function keyOf(name: string): Buffer {
  const key = keys.ofLength(name.length)
  writeText(key, 0, name)
  return key
}

function valueWith(meter: Meter, deadFromMs: number): Buffer {
  reusedValue.writeUInt32BE(Math.ceil(deadFromMs / 1000), 0)
  writeMeter(reusedValue, RECORD_OFFSET, meter)
  return reusedValue
}

/** @returns undefined if there is none */
export function readMeterOf(windows: Windows, name: string): Meter | undefined {
  const value = windows.getBinaryFast(keyOf(name))
  return value && readMeter(value, RECORD_OFFSET, 0)
}

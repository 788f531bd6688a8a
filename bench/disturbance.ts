/** Tells whether other processes used the machine during a measurement. */

import { readdirSync } from 'node:fs'
import { machineCpuMs, processStat } from '../test/harness/measure.ts'

/** Above this share of a core others were in the way, of the caches too. */
const OTHERS_BUSY_MAX = 0.15
const TRIES = 4

export interface Measured<Value> {
  readonly value: Value
  /** Cores that others used meanwhile, on average; undefined where the system does not tell (only Linux does). */
  readonly othersBusy: number | undefined
}

export async function measured<Value>(measure: () => Promise<Value>): Promise<Measured<Value>> {
  const [startMs, othersStartMs] = [performance.now(), othersCpuMs()]
  const value = await measure()
  const [endMs, othersEndMs] = [performance.now(), othersCpuMs()]
  if (othersStartMs === undefined || othersEndMs === undefined) return { value, othersBusy: undefined }
  return { value, othersBusy: Math.max(0, othersEndMs - othersStartMs) / (endMs - startMs) }
}

/** Measures again while others are in the way, until a point in time; the least disturbed of all counts. */
export async function leastDisturbed<Value>(
  measure: () => Promise<Value>,
  giveUpAtMs: number,
): Promise<Measured<Value>> {
  let best = await measured(measure)
  for (let attempt = 1; attempt < TRIES; attempt++) {
    if (!isDisturbed(best.othersBusy) || performance.now() >= giveUpAtMs) break
    const next = await measured(measure)
    if (next.othersBusy! < best.othersBusy!) best = next
  }
  return best
}

function isDisturbed(othersBusy: number | undefined): othersBusy is number {
  return othersBusy !== undefined && othersBusy > OTHERS_BUSY_MAX
}

/** A note for a table; empty if nobody was in the way. */
export function disturbanceNote(othersBusy: number | undefined): string {
  return isDisturbed(othersBusy) ? `others used ${(othersBusy * 100).toFixed(0)}% of a core` : ''
}

/** CPU time of all but this process and its descendants, the browser among them. */
function othersCpuMs(): number | undefined {
  try {
    return machineCpuMs() - ownCpuMs()
  } catch {
    return undefined // no /proc
  }
}

function ownCpuMs(): number {
  const rows = readdirSync('/proc').flatMap(name => (/^\d+$/.test(name) ? (rowOf(Number(name)) ?? []) : []))
  const own = rows.filter(({ pid }) => pid === process.pid)
  // `own` grows on the way, by the children of children.
  for (const { pid } of own) own.push(...rows.filter(({ parent }) => parent === pid))
  return own.reduce((sum, { cpuMs }) => sum + cpuMs, 0)
}

/** Counts ended threads too, such as the bench's workers; processUsage() sums over those that live. */
function rowOf(pid: number) {
  try {
    return { pid, ...processStat(pid) }
  } catch {
    return undefined // it has just ended
  }
}

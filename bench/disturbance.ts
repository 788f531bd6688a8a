/** Tells whether other processes used the machine during a measurement. */

import { readdirSync } from 'node:fs'
import { machineCpuMs, processStat } from '../test/harness/measure.ts'

/** Others who used more than this share of a core disturbed a measurement: they took time, and room in the caches. */
const OTHERS_BUSY_MAX = 0.15
const TRIES_MAX = 4

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

/** Measures again while others disturb it; no try begins after `giveUpAtMs` (performance.now). @returns the least disturbed try */
export async function leastDisturbed<Value>(measure: () => Promise<Value>, giveUpAtMs: number) {
  let best = await measured(measure)
  for (let attempt = 1; attempt < TRIES_MAX; attempt++) {
    if (!isDisturbed(best.othersBusy) || performance.now() >= giveUpAtMs) break
    const next = await measured(measure)
    if ((next.othersBusy ?? Infinity) < best.othersBusy) best = next
  }
  return best
}

function isDisturbed(othersBusy: number | undefined): othersBusy is number {
  return othersBusy !== undefined && othersBusy > OTHERS_BUSY_MAX
}

/** A note for a table; empty if nobody disturbed. */
export function disturbanceNote(othersBusy: number | undefined): string {
  return isDisturbed(othersBusy) ? `others used ${(othersBusy * 100).toFixed(0)}% of a core` : ''
}

/** CPU time of all processes but this one and its descendants (a browser, say); undefined if it cannot be read. */
function othersCpuMs(): number | undefined {
  try {
    return machineCpuMs() - ownCpuMs()
  } catch {
    return undefined // no /proc
  }
}

function ownCpuMs(): number {
  const pids = readdirSync('/proc').filter(name => /^\d+$/.test(name))
  const all = pids.flatMap(pid => processOf(Number(pid)) ?? [])
  const own = all.filter(({ pid }) => pid === process.pid)
  for (const { pid } of own) own.push(...all.filter(({ parent }) => parent === pid)) // `own` grows meanwhile, so its children come too
  return own.reduce((sum, { cpuMs, endedChildrenMs }) => sum + cpuMs + endedChildrenMs, 0)
}

/** Its CPU time includes that of ended threads, such as the bench's workers. */
function processOf(pid: number) {
  try {
    return { pid, ...processStat(pid) }
  } catch {
    return undefined // it has just ended
  }
}

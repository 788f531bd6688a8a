/** Tells whether other processes used the machine during a measurement. */

import { readdirSync, readFileSync } from 'node:fs'
import { machineCpuMs } from '../test/harness/measure.ts'

/** Above this share of a core others were in the way, of the caches too. */
const OTHERS_BUSY_MAX = 0.15

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
  for (let attempt = 1; attempt < 4 && isDisturbed(best) && performance.now() < giveUpAtMs; attempt++) {
    const next = await measured(measure)
    if (next.othersBusy! < best.othersBusy!) best = next
  }
  return best
}

export function isDisturbed({ othersBusy }: Pick<Measured<unknown>, 'othersBusy'>): boolean {
  return othersBusy !== undefined && othersBusy > OTHERS_BUSY_MAX
}

/** A note for a table; empty if nobody was in the way. */
export function disturbanceNote(othersBusy: number | undefined): string {
  return isDisturbed({ othersBusy }) ? `others used ${(othersBusy! * 100).toFixed(0)}% of a core` : ''
}

/** CPU time of all but this process and its descendants, the browser among them. */
function othersCpuMs(): number | undefined {
  try {
    return machineCpuMs() - ownCpuMs()
  } catch {
    return undefined // no /proc
  }
}

/** USER_HZ, which Linux fixes at 100 on every architecture that Node.js runs on. */
const TICK_MS = 10

interface ProcessRow {
  readonly pid: number
  readonly parent: number
  readonly cpuMs: number
}

function ownCpuMs(): number {
  const children = new Map<number, ProcessRow[]>()
  for (const name of readdirSync('/proc')) {
    const row = /^\d+$/.test(name) ? processRow(name) : undefined
    if (row !== undefined) children.set(row.parent, [...(children.get(row.parent) ?? []), row])
  }
  const own = [processRow(String(process.pid))!]
  for (const { pid } of own) own.push(...(children.get(pid) ?? []))
  return own.reduce((sum, { cpuMs }) => sum + cpuMs, 0)
}

/** Counts the threads that have ended too, as the bench's workers have; the sum over a process's threads does not. */
function processRow(pid: string): ProcessRow | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    // The second field is the program's name in parentheses, which may itself hold spaces and parentheses.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    const [parent, userTicks, systemTicks] = [fields[1], fields[11], fields[12]].map(Number)
    return { pid: Number(pid), parent: parent!, cpuMs: (userTicks! + systemTicks!) * TICK_MS }
  } catch {
    return undefined // it has just ended
  }
}

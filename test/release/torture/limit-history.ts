/**
 * Checks the limits against a history of calls. The limits that a call counts against are named by labels, which stand in its
 * field `of`, separated by ", ". When the service decided a call is unknown, except that it was between the
 * call's start and end. So a limit was certainly exceeded if more calls than it allows were admitted that start and end
 * within one window. A refusal was certainly wrong if fewer calls than the limit may have been admitted in the window before
 * it.
 */

import { WINDOW_MS } from '../../../src/domain/limits.ts'
import type { Call } from './history.ts'

/** Whether a call was admitted. Of the `unknown` calls, some were. */
export function fateOf({ status }: Call): 'admitted' | 'refused' | 'unknown' {
  if (status === 0 || status === 503) return 'unknown'
  return status === 429 ? 'refused' : 'admitted'
}

const labelsOf = ({ of = '' }: Call) => of.split(', ')

/** Clocks may drift apart by 500 ppm (the most by which they are adjusted), and limits are kept in whole milliseconds. */
const CLOCK_SLACK_MS = 32
/** A call may still be decided this long after its client gave up. */
const LATE_MS = 15_000

interface LimitBreaches {
  /** Limits that were exceeded: how many calls were admitted, within how many ms. */
  readonly exceeded: readonly string[]
  readonly wronglyRefused: readonly string[]
  /** Labels with a window that was full at some time. */
  readonly filled: number
  readonly refused: number
}

/** @param limitOf the limit of a label */
export function limitBreaches(calls: readonly Call[], limitOf: (label: string) => number): LimitBreaches {
  const byLabel = new Map<string, Call[]>()
  for (const call of calls) {
    for (const label of labelsOf(call)) {
      const ofLabel = byLabel.get(label)
      if (ofLabel === undefined) byLabel.set(label, [call])
      else ofLabel.push(call)
    }
  }
  const exceeded: string[] = []
  let filled = 0
  for (const [label, ofLabel] of byLabel) {
    const { most, breach } = fullestWindow(ofLabel, limitOf(label))
    if (breach !== undefined) exceeded.push(`${label}: ${breach}`)
    if (most >= limitOf(label)) filled++
  }
  const refused = calls.filter(call => fateOf(call) === 'refused')
  const wronglyRefused = refused.flatMap(call => {
    const labels = labelsOf(call)
    const rooms = labels.map(label => limitOf(label) - possiblyBefore(byLabel.get(label)!, call))
    if (rooms.some(room => room <= 0)) return []
    return labels.map((label, index) => `${label}, room for ${rooms[index]}`).join('; ')
  })
  return { exceeded, wronglyRefused, filled, refused: refused.length }
}

/** The greatest number that was certainly admitted in one window. */
function fullestWindow(calls: readonly Call[], limit: number): { most: number; breach?: string } {
  const admitted = calls.filter(call => fateOf(call) === 'admitted')
  let most = 0
  for (const { startedMs } of admitted) {
    const until = startedMs + WINDOW_MS - CLOCK_SLACK_MS
    // Calls that began before this one may have been decided before the window, so they do not count.
    let count = 0
    for (const other of admitted) if (other.startedMs >= startedMs && other.endedMs < until) count++
    most = Math.max(most, count)
  }
  if (most <= limit) return { most }
  return { most, breach: `${most} admitted within a window, more than ${limit} (${admitted.length} in all)` }
}

/** How many calls may have been admitted in the window before a refusal. */
function possiblyBefore(calls: readonly Call[], refusal: Call): number {
  const from = refusal.startedMs - WINDOW_MS - CLOCK_SLACK_MS
  let count = 0
  for (const call of calls) {
    const fate = fateOf(call)
    if (fate === 'refused' || call.startedMs > refusal.endedMs) continue
    const lastMs = fate === 'unknown' ? call.endedMs + LATE_MS : call.endedMs
    if (lastMs > from) count++
  }
  return count
}

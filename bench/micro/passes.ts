/** Runs a step over its inputs. */

import type { AsyncWork, SyncWork, Work } from './case.ts'

/** So many calls of an asynchronous step are under way at a time, as in a service with traffic. */
export const UNDER_WAY = 32

/** @returns how many of the first `count` results are right */
export function syncPass(step: SyncWork['step'], count: number): number {
  let right = 0
  for (let index = 0; index < count; index++) right += step(index)
  return right
}

export async function asyncPass(step: AsyncWork['step'], count: number): Promise<number> {
  let right = 0
  for (let start = 0; start < count; start += UNDER_WAY) {
    const results: Promise<number>[] = []
    for (let index = start; index < Math.min(count, start + UNDER_WAY); index++) results.push(step(index))
    for (const result of await Promise.all(results)) right += result
  }
  return right
}

/** Throws Error unless every result is right: figures of work that fails would say nothing. */
export async function checkedPass(work: Work): Promise<void> {
  work.rewind?.()
  const { count } = work
  const right = work.kind === 'sync' ? syncPass(work.step, count) : await asyncPass(work.step, count)
  requireAll(right, count)
}

export function requireAll(right: number, count: number): void {
  if (right !== count) throw new Error(`${count - right} of ${count} results are wrong`)
}

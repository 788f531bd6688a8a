/** Finds the child processes of a process (Linux, /proc). */

import { readdirSync, readFileSync } from 'node:fs'

/** The children that are alive, of all threads, in ascending order. */
export function childPids(pid: number): number[] {
  return readdirSync(`/proc/${pid}/task`)
    .flatMap(thread => readFileSync(`/proc/${pid}/task/${thread}/children`, 'latin1').split(' '))
    .filter(text => text.trim() !== '')
    .map(Number)
    .sort((a, b) => a - b)
}

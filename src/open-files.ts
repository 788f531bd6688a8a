/** Files of a process: how many are open, may be open, and so how many connections fit. The system (Linux) tells. */

import { readFileSync } from 'node:fs'
import { readdir } from 'node:fs/promises'

/** For everything that is no connection of a client: libraries, the store, logs. */
const OTHER_FILES = 256
/** Where the system does not tell its limit. */
const LIMIT_UNKNOWN = 10_000
/** A relayed connection is three: the client's, and both ends of the one to the HTTP server. */
const RELAYED_FILES = 3

/** @param isRelayed whether a PROXY protocol relay stands before the HTTP server */
export function connectionsThatFit(isRelayed: boolean): number {
  const files = openFilesMax('self') - OTHER_FILES
  return Math.max(1, Math.floor(files / (isRelayed ? RELAYED_FILES : 1)))
}

/** undefined if the process has gone, or the system does not tell. 19,000 open files took 45 ms, of another thread. */
export async function openFilesOf(pid: number | undefined) {
  if (pid === undefined) return undefined
  try {
    return { open: (await readdir(`/proc/${pid}/fd`)).length, max: openFilesMax(pid) }
  } catch {
    return undefined
  }
}

/** Node.js has raised it as far as it may be. */
function openFilesMax(pid: number | 'self'): number {
  try {
    const limits = readFileSync(`/proc/${pid}/limits`, 'latin1')
    const soft = /^Max open files\s+(\d+|unlimited)/m.exec(limits)?.[1]
    return soft === 'unlimited' ? Number.POSITIVE_INFINITY : Number(soft ?? LIMIT_UNKNOWN)
  } catch {
    return LIMIT_UNKNOWN
  }
}

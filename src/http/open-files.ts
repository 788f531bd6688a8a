/** Reads from /proc how many files, connections among them, a process has and may have open. */

import { readFileSync } from 'node:fs'
import { readdir } from 'node:fs/promises'

/** Libraries, the store and logs need so many files. */
const OTHER_FILES = 256
const LIMIT_ASSUMED = 10_000
/** The client's socket, and both ends of the one to the HTTP server. */
const RELAYED_FILES = 3

export function connectionsThatFit(hasRelay: boolean): number {
  const files = openFilesMax('self') - OTHER_FILES
  return Math.max(1, Math.floor(files / (hasRelay ? RELAYED_FILES : 1)))
}

const FEW_CONNECTIONS = 1000

/** Returns a warning if a worker has files for few connections, or for fewer than the settings allow. */
export function fewConnections(hasRelay: boolean, connectionsMax: number): string[] {
  const count = connectionsThatFit(hasRelay)
  if (count >= (connectionsMax || FEW_CONNECTIONS)) return []
  return [
    `a worker may open ${openFilesMax('self')} files, enough for ${count} connections: raise the limit (ulimit -n, LimitNOFILE)`,
  ]
}

/** Returns undefined if /proc has no such process, usually because it has ended. Takes 45 ms for 19,000 files, in another thread. */
export async function openFilesOf(pid: number | undefined) {
  if (pid === undefined) return undefined
  try {
    return { open: (await readdir(`/proc/${pid}/fd`)).length, max: openFilesMax(pid) }
  } catch {
    return undefined
  }
}

/** The soft limit, which Node.js has raised to the hard one. */
export function openFilesMax(pid: number | 'self'): number {
  try {
    const limits = readFileSync(`/proc/${pid}/limits`, 'latin1')
    const soft = /^Max open files\s+(\d+|unlimited)/m.exec(limits)?.[1]
    return soft === 'unlimited' ? Number.POSITIVE_INFINITY : Number(soft ?? LIMIT_ASSUMED)
  } catch {
    return LIMIT_ASSUMED
  }
}

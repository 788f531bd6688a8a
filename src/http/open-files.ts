/** Limits of the system (Linux, /proc): open files of a process, so how many connections fit; how listeners close. */

import { readFileSync } from 'node:fs'
import { readdir } from 'node:fs/promises'

/** Reserved for everything besides clients' connections: libraries, the store, logs. */
const OTHER_FILES = 256
/** Assumed if the system reports no limit. */
const LIMIT_UNKNOWN = 10_000
/** A relayed connection takes three files: the client's, and both ends of the connection to the HTTP server. */
const RELAYED_FILES = 3

/** @param isRelayed whether a PROXY protocol relay stands before the HTTP server */
export function connectionsThatFit(isRelayed: boolean): number {
  const files = openFilesMax('self') - OTHER_FILES
  return Math.max(1, Math.floor(files / (isRelayed ? RELAYED_FILES : 1)))
}

/** undefined if the process has ended, or the system reports no files. 19,000 open files took 45 ms, in another thread. */
export async function openFilesOf(pid: number | undefined) {
  if (pid === undefined) return undefined
  try {
    return { open: (await readdir(`/proc/${pid}/fd`)).length, max: openFilesMax(pid) }
  } catch {
    return undefined
  }
}

/** The soft limit, which Node.js has raised as far as allowed. */
export function openFilesMax(pid: number | 'self'): number {
  try {
    const limits = readFileSync(`/proc/${pid}/limits`, 'latin1')
    const soft = /^Max open files\s+(\d+|unlimited)/m.exec(limits)?.[1]
    return soft === 'unlimited' ? Number.POSITIVE_INFINITY : Number(soft ?? LIMIT_UNKNOWN)
  } catch {
    return LIMIT_UNKNOWN
  }
}

/**
 * Whether connections that wait at a listener that closes go to another of the same port, instead of being reset.
 *
 * @returns undefined where the kernel does not know the setting (before Linux 5.14)
 */
export function migratesConnections(): boolean | undefined {
  try {
    return readFileSync('/proc/sys/net/ipv4/tcp_migrate_req', 'latin1').trim() !== '0'
  } catch {
    return undefined
  }
}

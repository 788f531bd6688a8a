/** How many connections a process can have open, which is for the system to say. */

import { readFileSync } from 'node:fs'

/** For everything that is no connection of a client: libraries, the store, logs. */
const OTHER_FILES = 256
/** Where the system does not tell its limit. */
const LIMIT_UNKNOWN = 10_000
/** A relayed connection is three: the client's, and both ends of the one to the HTTP server. */
const RELAYED_FILES = 3

/** @param isRelayed whether a PROXY protocol relay stands before the HTTP server */
export function connectionsThatFit(isRelayed: boolean): number {
  const files = openFilesMax() - OTHER_FILES
  return Math.max(1, Math.floor(files / (isRelayed ? RELAYED_FILES : 1)))
}

/** Of this process (Linux). Node.js has raised it as far as it may be. */
function openFilesMax(): number {
  try {
    const limits = readFileSync('/proc/self/limits', 'latin1')
    const soft = /^Max open files\s+(\d+|unlimited)/m.exec(limits)?.[1]
    return soft === 'unlimited' ? Number.POSITIVE_INFINITY : Number(soft ?? LIMIT_UNKNOWN)
  } catch {
    return LIMIT_UNKNOWN
  }
}

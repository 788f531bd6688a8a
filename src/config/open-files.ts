/** Reads from /proc how many files, connections among them, a process has and may have open; and its memory, which needs a file too. */

import { readFileSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import type { Config } from './config.ts'

/** Libraries, the store and logs need 30 files, and with a large Redis Cluster this many. */
const OTHER_FILES = 256
/** They get a quarter of a low limit, and at least this many. */
const OTHER_FILES_MIN = 48
/** The store process needs so many files beside its connections: two for a worker, and half as many again while a roll replaces workers. */
export const STORE_FILES = 32
const STORE_FILES_PER_WORKER = 3
const LIMIT_ASSUMED = 10_000
/** The client's socket, and both ends of the one to the HTTP server. */
const RELAYED_FILES = 3

export function connectionsThatFit(hasRelay: boolean): number {
  const max = openFilesMax('self')
  const files = max - Math.min(OTHER_FILES, Math.max(OTHER_FILES_MIN, max / 4))
  return Math.max(1, Math.floor(files / (hasRelay ? RELAYED_FILES : 1)))
}

const FEW_CONNECTIONS = 1000

/** Returns warnings: if a worker has files for few connections, or for fewer than the settings allow; if the store process has too few. */
export function fewFiles({ proxyProtocol, connectionsMax, redis, workers }: Config): string[] {
  const max = openFilesMax('self')
  const warnings: string[] = []
  const warn = (text: string) => warnings.push(`${text}: raise the limit (ulimit -n, LimitNOFILE)`)
  const count = connectionsThatFit(proxyProtocol)
  if (count < (connectionsMax || FEW_CONNECTIONS))
    warn(`a worker may open ${max} files, enough for ${count} connections`)
  const needed = STORE_FILES + STORE_FILES_PER_WORKER * workers
  if (redis === undefined && max < needed)
    warn(`the store process may open ${max} files, and needs ${needed} for POWGATE_WORKERS=${workers}`)
  return warnings
}

let lastMemory = process.memoryUsage()

/** Returns the last reading if no more files may be opened, because a timer that throws ends the process. */
export function memoryUsage(): NodeJS.MemoryUsage {
  try {
    lastMemory = process.memoryUsage()
  } catch {}
  return lastMemory
}

/** Returns undefined if /proc has no such process, usually because it has ended. Takes 45 ms for 19,000 files, in another thread. */
export async function openFilesOf(pid: number) {
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

/** Processes that serve a port, the children of a process, and signals to them. */

import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'

/** Processes that listen on a TCP port. */
export function listeningPids(port: number): number[] {
  const table = execFileSync('ss', ['-ltnpH', `sport = :${port}`]).toString()
  const pids = [...table.matchAll(/pid=(\d+)/g)].map(match => Number(match[1]))
  return [...new Set(pids)] // each listens with several sockets
}

/** Both ends of the TCP connections that a process has on IPv4. */
export function connectionsOf(
  pid: number,
): { readonly local: string; readonly peer: string; readonly peerPort: number }[] {
  const table = execFileSync('ss', ['-4tnpH']).toString()
  return table.split('\n').flatMap(line => {
    const [, local, peer, peerPort] = /\s([\d.]+):\d+\s+([\d.]+):(\d+)\s/.exec(line) ?? []
    const isOwn = line.includes(`pid=${pid},`) && local !== undefined && peer !== undefined
    return isOwn ? [{ local, peer, peerPort: Number(peerPort) }] : []
  })
}

/** The children that are alive, of all threads, in ascending order (Linux, /proc). */
export function childPids(pid: number): number[] {
  return readdirSync(`/proc/${pid}/task`)
    .flatMap(thread => readFileSync(`/proc/${pid}/task/${thread}/children`, 'latin1').split(' '))
    .filter(text => text.trim() !== '')
    .map(Number)
    .sort((a, b) => a - b)
}

/** @returns false if the process has ended, for instance because another part of the case killed it */
export function signalIfThere(pid: number, signal: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, signal)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false
    throw error
  }
}

/** How many established connections at this port each process has. */
export function connectionsPerProcess(port: number, pids: readonly number[]): number[] {
  const table = execFileSync('ss', ['-tnpH', 'state', 'established', `sport = :${port}`], {
    maxBuffer: 1 << 26,
  }).toString()
  return pids.map(pid => table.split(`pid=${pid},`).length - 1)
}

/** A process that has ended and is not yet waited for by its parent is not alive. */
export function isAlive(pid: number): boolean {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'latin1'))
  } catch {
    return false
  }
}

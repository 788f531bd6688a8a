/** Finds the processes that serve a port, and the children of a process. */

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

/** Which processes serve. */

import { execFileSync } from 'node:child_process'

/** Processes that listen on a TCP port. */
export function listeningPids(port: number): number[] {
  const table = execFileSync('ss', ['-ltnpH', `sport = :${port}`]).toString()
  const pids = [...table.matchAll(/pid=(\d+)/g)].map(match => Number(match[1]))
  return [...new Set(pids)] // each listens with several sockets
}

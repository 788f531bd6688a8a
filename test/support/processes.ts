/** Which processes serve. */

import { execFileSync } from 'node:child_process'

/** Processes that listen on a TCP port. */
export function listeningPids(port: number): number[] {
  const table = execFileSync('ss', ['-ltnpH', `sport = :${port}`]).toString()
  return [...table.matchAll(/pid=(\d+)/g)].map(match => Number(match[1]))
}

import { execFileSync } from 'node:child_process'

/** How many established connections at this port each process has. */
export function connectionsPerProcess(port: number, pids: readonly number[]): number[] {
  const table = execFileSync('ss', ['-tnpH', 'state', 'established', `sport = :${port}`], {
    maxBuffer: 1 << 26,
  }).toString()
  return pids.map(pid => table.split(`pid=${pid},`).length - 1)
}

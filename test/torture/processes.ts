import { execFileSync } from 'node:child_process'

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

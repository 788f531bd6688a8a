/** How much memory the processes of a service keep, and whether it grows. */

import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { workerPids } from '../../harness/processes.ts'
import type { TestService } from '../../harness/service.ts'
import type { Run } from './run.ts'

/** A number of KiB in /proc/<pid>/status, as "VmRSS". Throws if the process has ended. */
function kibOf(pid: number, field: string): number {
  const status = readFileSync(`/proc/${pid}/status`, 'latin1')
  const found = new RegExp(`^${field}:\\s+(\\d+)`, 'm').exec(status)?.[1]
  // A process that is not yet reaped has no such field.
  if (found === undefined) throw new Error(`it has no ${field}`)
  return Number(found)
}

/**
 * Collects the garbage of a service's processes, and tells what stays. A heap decides itself when it collects, also when
 * idle. That alone can turn a worker of 100 MiB into one of 150.
 */
export class KeptMemory {
  readonly #dir = mkdtempSync(join(tmpdir(), 'powgate-kept-'))
  /** Settings of the service. */
  readonly env = {
    NODE_OPTIONS: `--import="${new URL('collect-garbage.mjs', import.meta.url)}"`,
    KEPT_MEMORY_DIR: this.#dir,
  }

  constructor(run: Pick<Run, 'defer'>) {
    run.defer(() => rmSync(this.#dir, { recursive: true, force: true }))
  }

  /** Requests a garbage collection from each process; it runs as soon as the process is free. Ended processes are skipped. */
  collect(pids: readonly number[]): void {
    for (const pid of pids) if (existsSync(`/proc/${pid}`)) process.kill(pid, 'SIGUSR2')
  }

  /** @returns KiB of JavaScript objects, without those of buffers, after the last collection; Infinity before the first */
  kibOf(pid: number): number {
    const path = join(this.#dir, String(pid))
    // The file may be empty while it is being written.
    return (existsSync(path) && Number(readFileSync(path, 'latin1')) / 1024) || Number.POSITIVE_INFINITY
  }
}

/** A second apart: pages go back to the system bit by bit. */
const COLLECTIONS = { full: 15, bounded: 2 } as const
const GROWTH_MAX = 1.05
/** JavaScript objects are measured exactly to some KiB. They may grow by 16 bytes, the least size of an object, for one request in 128. */
const LIVING_GROWTH_BYTES = 1 / 8
const LIVING_GROWTH_KIB = 256
/** The primary fills its history for half an hour, and compiles for hours what runs once a second. */
const PRIMARY_KIB_A_MINUTE = 30

/** KiB of a process without garbage: what the system has given it, and its JavaScript objects. */
interface Kept {
  readonly resident: number
  readonly living: number
}

/** What the primary process and the workers keep while no requests come, before a load and after it. */
export class SettledMemory {
  readonly #kept: KeptMemory
  readonly #pids: readonly number[]
  readonly #collections: number
  #before: Kept[] = []
  #settledAtMs = 0

  constructor(kept: KeptMemory, { pid }: TestService, isFull: boolean) {
    this.#kept = kept
    this.#pids = [pid, ...workerPids(pid)]
    this.#collections = isFull ? COLLECTIONS.full : COLLECTIONS.bounded
  }

  async settle(): Promise<void> {
    this.#before = await this.#settled()
    this.#settledAtMs = performance.now()
  }

  async #settled(): Promise<Kept[]> {
    let least = this.#pids.map(() => ({
      resident: Number.POSITIVE_INFINITY,
      living: Number.POSITIVE_INFINITY,
    }))
    for (let count = 0; count < this.#collections; count++) {
      this.#kept.collect(this.#pids)
      await sleep(1000)
      least = this.#pids.map((pid, index) => ({
        resident: Math.min(least[index]!.resident, kibOf(pid, 'VmRSS')),
        living: Math.min(least[index]!.living, this.#kept.kibOf(pid)),
      }))
    }
    return least
  }

  /** Compares the memory with that of `settle`. In a bounded run nothing is judged. @param requests that came in between */
  async judge(run: Run, requests: number): Promise<void> {
    const minutes = (performance.now() - this.#settledAtMs) / 60_000
    const after = await this.#settled()
    for (const [index, { resident, living }] of after.entries()) {
      const before = this.#before[index]!
      const name = index === 0 ? 'the primary' : `worker ${index - 1}`
      run.checkTime(`memory of ${name}, after against before`, resident / before.resident, GROWTH_MAX, 'x')
      const grownKib = living - before.living
      const bytes = (requests * LIVING_GROWTH_BYTES) / (this.#pids.length - 1)
      const mostKib = LIVING_GROWTH_KIB + (index === 0 ? minutes * PRIMARY_KIB_A_MINUTE : bytes / 1024)
      run.checkTime(`growth of the living objects of ${name}`, grownKib, Math.round(mostKib), 'KiB')
    }
  }
}

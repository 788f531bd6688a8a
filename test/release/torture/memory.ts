/** How much memory the processes of a service keep, and whether it grows. */

import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { processUsage } from '../../harness/measure.ts'
import { signalIfThere, workerPids } from '../../harness/processes.ts'
import { temporaryDir } from '../../harness/temporary.ts'
import type { Run } from './run.ts'

/** Tells what stays after a collection: left alone, a heap chooses when it collects, which can turn 100 MiB of a worker into 150. */
export class KeptMemory {
  readonly #dir = temporaryDir('kept')
  readonly env = {
    NODE_OPTIONS: `--import="${new URL('collect-garbage.mjs', import.meta.url)}"`,
    KEPT_MEMORY_DIR: this.#dir,
  }

  /** Requests a garbage collection from each process; it runs as soon as the process is free. Ended processes are skipped. */
  collect(pids: readonly number[]): void {
    for (const pid of pids) {
      rmSync(join(this.#dir, String(pid)), { force: true }) // or it would be read if this collection is late
      signalIfThere(pid, 'SIGUSR2')
    }
  }

  /** @returns KiB of JavaScript objects, without those of buffers, after the collection that was requested; Infinity before its end */
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
const LIVING_GROWTH_BYTES_A_REQUEST = 1 / 8
const LIVING_GROWTH_KIB = 256
/** The primary fills its history for half an hour, and compiles for hours what runs once a second. */
const PRIMARY_KIB_A_MINUTE = 30

/** What a process keeps without garbage: the bytes that the system has given it, and the KiB of its JavaScript objects. */
interface Kept {
  readonly residentBytes: number
  readonly livingKib: number
}

/** What these processes keep while no requests come: the least of several looks. */
async function settled(kept: KeptMemory, pids: readonly number[], isFull: boolean): Promise<Kept[]> {
  const looks: Kept[][] = []
  while (looks.length < COLLECTIONS[isFull ? 'full' : 'bounded']) {
    kept.collect(pids)
    await sleep(1000)
    looks.push(
      pids.map(pid => ({ residentBytes: processUsage(pid).residentBytes, livingKib: kept.kibOf(pid) })),
    )
  }
  return pids.map((_, index) => ({
    residentBytes: Math.min(...looks.map(look => look[index]!.residentBytes)),
    livingKib: Math.min(...looks.map(look => look[index]!.livingKib)),
  }))
}

/** Measures what a service's processes keep. @param pid its primary @returns compares with it what they keep after so many requests */
export async function memoryBefore(run: Run, kept: KeptMemory, pid: number) {
  // The primary first; what they keep is in the same order. Left out is the store process, which keeps what it stores.
  const pids = [pid, ...workerPids(pid)]
  const allBefore = await settled(kept, pids, run.isFull)
  const settledAtMs = performance.now()
  return async (requests: number): Promise<void> => {
    const minutes = (performance.now() - settledAtMs) / 60_000
    for (const [index, { residentBytes, livingKib }] of (await settled(kept, pids, run.isFull)).entries()) {
      const [before, name] = [allBefore[index]!, index === 0 ? 'the primary' : `worker ${index - 1}`]
      const ratio = residentBytes / before.residentBytes
      run.checkMeasured(`memory of ${name}, after against before`, ratio, GROWTH_MAX, 'x')
      const bytes = (requests * LIVING_GROWTH_BYTES_A_REQUEST) / (pids.length - 1) // of each worker
      const mostKib = LIVING_GROWTH_KIB + (index === 0 ? minutes * PRIMARY_KIB_A_MINUTE : bytes / 1024)
      const grownKib = livingKib - before.livingKib
      run.checkMeasured(`growth of the living objects of ${name}`, grownKib, Math.round(mostKib), 'KiB')
    }
  }
}

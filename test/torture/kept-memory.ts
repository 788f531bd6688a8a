/**
 * How much memory the processes of a service keep after garbage collection. A heap decides itself when it collects, also when
 * idle. That alone can turn a worker of 100 MiB into one of 150.
 */

import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Run } from './run.ts'

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

  /** @returns bytes of JavaScript objects, without those of buffers, after the last collection; undefined before the first */
  bytesOf(pid: number): number | undefined {
    const path = join(this.#dir, String(pid))
    // The file may be empty while it is being written.
    return (existsSync(path) && Number(readFileSync(path, 'latin1'))) || undefined
  }
}

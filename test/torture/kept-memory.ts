/**
 * What processes of a service keep of their memory. When a heap collects the rest is its own choice, also when it is idle, and that
 * alone makes a worker of 100 MiB one of 150.
 */

import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Run } from './run.ts'

export class KeptMemory {
  readonly #dir = mkdtempSync(join(tmpdir(), 'powgate-kept-'))
  /** What a service needs to be asked. */
  readonly env = {
    NODE_OPTIONS: `--import="${new URL('collect-garbage.mjs', import.meta.url)}"`,
    KEPT_MEMORY_DIR: this.#dir,
  }

  constructor(run: Pick<Run, 'defer'>) {
    run.defer(() => rmSync(this.#dir, { recursive: true, force: true }))
  }

  /** Has them collect their garbage, each as soon as it gets to it. Those that have ended are left out. */
  collect(pids: readonly number[]): void {
    for (const pid of pids) if (existsSync(`/proc/${pid}`)) process.kill(pid, 'SIGUSR2')
  }

  /** @returns bytes of JavaScript objects, without the bytes of buffers, after its last collection; undefined before the first */
  bytesOf(pid: number): number | undefined {
    const path = join(this.#dir, String(pid))
    // It may be about to be written.
    return (existsSync(path) && Number(readFileSync(path, 'latin1'))) || undefined
  }
}

/** Looks into a measured worker (event loop, garbage collections, CPU profile), where probe.mjs listens on a socket named by the process id. */

import { connect } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { temporaryDir } from '../../test/harness/temporary.ts'

/** What a worker's thread did between `start` or `profile` and `stop`. */
export interface Look {
  /** How long the event loop took to come to a timer of 1 ms: little more than 1 if nothing holds it up. */
  readonly delayMs: { readonly p99: number; readonly max: number }
  /** Kinds are the constants NODE_PERFORMANCE_GC_* of node:perf_hooks. */
  readonly garbageCollections: readonly { readonly ms: number; readonly kind: number }[]
  /** A CPU profile (Chrome DevTools Protocol, Profiler.Profile), if one was asked for. */
  readonly profile?: object
}

export class Probe {
  readonly #folder = temporaryDir('probe')
  /** Environment of the processes that are to be looked into. */
  readonly env = {
    NODE_OPTIONS: `--import=${new URL('probe.mjs', import.meta.url).href}`,
    BENCH_PROBE: this.#folder,
  }

  start = (pid: number) => this.#ask(pid, 'start')
  profile = (pid: number) => this.#ask(pid, 'profile')
  stop = async (pid: number): Promise<Look> => JSON.parse(await this.#ask(pid, 'stop'))

  async #ask(pid: number, order: string): Promise<string> {
    const socket = connect(join(this.#folder, String(pid)))
    socket.write(order)
    return await text(socket)
  }
}

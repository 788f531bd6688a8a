/** Looks into a measured worker: its event loop's delay, its garbage collections, and its CPU profile. */

import { connect } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { temporaryDir } from '../../test/harness/temporary.ts'

/** What a worker's thread did since it was asked to start, or to profile. */
export interface Look {
  /** How late the event loop came to a timer of 1 ms, in milliseconds. */
  readonly delayMs: { readonly p99: number; readonly max: number }
  readonly collections: readonly { readonly ms: number; readonly kind: number }[]
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

  /** @returns the look, if the order is `stop`; an empty object otherwise */
  async ask(pid: number, order: 'start' | 'profile' | 'stop'): Promise<Look> {
    const socket = connect(join(this.#folder, String(pid)))
    socket.write(order)
    return JSON.parse(await text(socket))
  }
}

/** Looks into a measured worker: its event loop's delay, its garbage collections, and its CPU profile. */

import { connect } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { temporaryDir } from '../../test/harness/temporary.ts'

/** What a worker's thread did between two questions. */
export interface Look {
  /** How late the event loop came to a timer of 1 ms, in milliseconds. */
  readonly delayMs: { readonly p50: number; readonly p99: number; readonly max: number }
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

  async start(pid: number, hasProfile = false): Promise<void> {
    await this.#ask(pid, 'start')
    if (hasProfile) await this.#ask(pid, 'profile')
  }

  stop(pid: number): Promise<Look> {
    return this.#ask(pid, 'stop')
  }

  async #ask<Answer>(pid: number, order: string): Promise<Answer> {
    const socket = connect(join(this.#folder, String(pid)))
    socket.write(order)
    return JSON.parse(await text(socket))
  }
}

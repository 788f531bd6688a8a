/** How late the event loop runs its timers, over the last 10 to 20 seconds. */

import { type IntervalHistogram, monitorEventLoopDelay } from 'node:perf_hooks'
import type { Gauges } from './snapshot.ts'

const SAMPLE_MS = 20
const WINDOW_MS = 10_000
const NS_PER_SECOND = 1e9

export class EventLoopLag {
  #older = startMonitor()
  #newer = startMonitor()

  constructor() {
    // Two overlapping windows: every stall is visible for at least 10 s, also when a window starts during it.
    setInterval(() => {
      this.#older.disable()
      this.#older = this.#newer
      this.#newer = startMonitor()
    }, WINDOW_MS).unref()
  }

  /** Seconds. */
  get(): Gauges['eventLoopLagSeconds'] {
    const monitor = this.#older
    return { mean: lag(monitor.mean), p99: lag(monitor.percentile(99)), max: lag(monitor.max) }
  }
}

function startMonitor(): IntervalHistogram {
  const monitor = monitorEventLoopDelay({ resolution: SAMPLE_MS })
  monitor.enable()
  return monitor
}

/** The histogram holds the time from one sample to the next. NaN (no samples yet) becomes 0. */
function lag(nanoseconds: number): number {
  const seconds = nanoseconds / NS_PER_SECOND - SAMPLE_MS / 1000
  return seconds > 0 ? Math.round(seconds * 1e6) / 1e6 : 0
}

/**
 * Loaded into the measured server's processes by NODE_OPTIONS: tells on a socket what the worker's thread did. probe.ts sends `start`
 * or `profile`, and later `stop`, each over a connection of its own; the answer is JSON. Plain JavaScript, since the server runs
 * without a loader.
 */

import cluster from 'node:cluster'
import { Session } from 'node:inspector/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { monitorEventLoopDelay, PerformanceObserver } from 'node:perf_hooks'

const folder = process.env.BENCH_PROBE
/** Each sample costs some 10 us, so profiling takes 2 % of the thread's time. */
const SAMPLE_US = 500

if (folder && cluster.isWorker) {
  const delays = monitorEventLoopDelay({ resolution: 1 })
  let garbageCollections = []
  let session
  const observer = new PerformanceObserver(list => {
    for (const { duration, detail } of list.getEntries())
      garbageCollections.push({ ms: duration, kind: detail.kind })
  })
  const answers = {
    async start() {
      garbageCollections = []
      observer.observe({ entryTypes: ['gc'] })
      delays.reset()
      delays.enable()
      return {}
    },
    async profile() {
      session = new Session()
      session.connect()
      await session.post('Profiler.enable')
      await session.post('Profiler.setSamplingInterval', { interval: SAMPLE_US })
      await session.post('Profiler.start')
      return {}
    },
    async stop() {
      delays.disable()
      observer.disconnect()
      const profile = session && (await session.post('Profiler.stop')).profile
      session?.disconnect()
      session = undefined
      const delayMs = { p99: delays.percentile(99) / 1e6, max: delays.max / 1e6 }
      return { garbageCollections, delayMs, profile }
    },
  }
  createServer(socket => {
    socket.on('data', async data => socket.end(JSON.stringify(await answers[data.toString()]())))
    socket.on('error', () => {})
  })
    .listen(join(folder, String(process.pid)))
    .unref()
}

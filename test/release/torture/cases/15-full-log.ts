/**
 * Disks of the log, the data and the trace that are full, each alone and all together, and then have room again. A full log costs
 * no request: every line is on its disk or counted as lost. A signal ends the service within its drain time meanwhile.
 */

import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { eventually } from '../../../harness/eventually.ts'
import { call } from '../../../harness/http.ts'
import { PrometheusText } from '../../../harness/metrics.ts'
import { freePort } from '../../../harness/ports.ts'
import { endProcess, hasEnded } from '../../../harness/processes.ts'
import { TEST_SECRET } from '../../../harness/service.ts'
import { fill, smallDisk } from '../disk.ts'
import type { Run, TortureCase } from '../run.ts'

const MAIN = new URL('../../../../dist/main.js', import.meta.url).pathname
const DISK_BYTES = 4 * 2 ** 20
const START_MS = 30_000
const RECOVERY_MS = 15_000
const DRAIN_SECONDS = 2
/** Beyond the drain time: a busy machine. */
const END_MS_MAX = DRAIN_SECONDS * 1000 + 8000
const KINDS = ['log', 'data'] as const
type Kind = (typeof KINDS)[number]

export const fullLog: TortureCase = {
  number: 15,
  name: 'full-log',
  aim: 'serving never depends on a log; lines lost are counted exactly; a signal ends the service',
  fullSize: '/dev/full; full disks of the log, the data and the trace, each alone and together, and back',
  async run(run) {
    await devFull(run)
    const disks = run.isFull ? [['log'], ['data'], KINDS] : [['log'], KINDS]
    for (const kinds of disks as (readonly Kind[])[]) await fullAndBack(run, kinds)
  },
}

/** The service with its log in a file, and every answer of an endpoint that does not exist in that log. */
class Scene {
  readonly #run: Run
  readonly #port: number
  readonly #adminPort: number
  readonly #child: ChildProcess
  requests = 0

  private constructor(run: Run, ports: readonly [number, number], child: ChildProcess) {
    this.#run = run
    ;[this.#port, this.#adminPort] = ports
    this.#child = child
  }

  static async set(run: Run, log: string, data: string): Promise<Scene> {
    const ports = [await freePort(), await freePort()] as const
    const { PATH, HOME } = process.env
    const env = {
      ...{ PATH, HOME, HOST: '127.0.0.1', PORT: String(ports[0]), POWGATE_ADMIN_PORT: String(ports[1]) },
      ...{ POWGATE_WORKERS: '2', POWGATE_SECRETS: TEST_SECRET, POWGATE_DATA_DIR: data },
      ...{ POWGATE_DRAIN_SECONDS: String(DRAIN_SECONDS) },
      ...{ LOG_LEVEL: 'trace', POWGATE_TEST_KEYS: 'on', POWGATE_OVERLOAD_MS: '0' },
    }
    const output = openSync(log, 'a')
    const child = spawn(process.execPath, [MAIN], { env, stdio: ['ignore', output, 'ignore'] })
    closeSync(output)
    run.defer(() => hasEnded(child) || endProcess(child, 'SIGKILL'))
    const scene = new Scene(run, ports, child)
    await eventually(START_MS, 'the service is ready', async () => (await scene.admin('/readyz')) === 200)
    return scene
  }

  async admin(path: string): Promise<number> {
    return (await call(`http://127.0.0.1:${this.#adminPort}${path}`).catch(() => undefined))?.status ?? 0
  }

  /** Requests that are logged at `trace`, a line each. @returns the statuses that were not the usual one */
  async ask(count: number): Promise<number> {
    let others = 0
    for (let done = 0; done < count; done++) {
      const answer = await call(`http://127.0.0.1:${this.#port}/challenge`).catch(() => undefined)
      if (answer?.status !== 400) others++
    }
    this.requests += count
    return others
  }

  async lost(): Promise<number> {
    const { text } = await call(`http://127.0.0.1:${this.#adminPort}/metrics`)
    return new PrometheusText(text).samples('powgate_log_lines_lost_total')[0]!.value
  }

  async end(words: string): Promise<void> {
    const startedAtMs = performance.now()
    await endProcess(this.#child, 'SIGTERM')
    const tookMs = performance.now() - startedAtMs
    this.#run.check(tookMs < END_MS_MAX, `${words}: SIGTERM took ${Math.round(tookMs)} ms`)
    this.#run.figure(`${words}: SIGTERM, ms`, Math.round(tookMs))
  }
}

async function devFull(run: Run): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'powgate-full-'))
  run.defer(() => rmSync(folder, { recursive: true }))
  const scene = await Scene.set(run, '/dev/full', join(folder, 'data'))
  const others = await scene.ask(run.count(5000, 2600))
  run.check(others === 0, `/dev/full: ${others} of ${scene.requests} requests were not answered as usual`)
  const lost = await scene.lost()
  run.check(lost > 0, '/dev/full: no line was counted as lost')
  run.check((await scene.admin('/healthz')) === 200, '/dev/full: not healthy')
  run.figure('/dev/full', `${scene.requests} requests, ${others} lost; ${lost} lines lost`)
  await scene.end('/dev/full')
}

async function fullAndBack(run: Run, kinds: readonly Kind[]): Promise<void> {
  const words = `full: ${kinds.join(', ')}`
  const path = smallDisk(run, DISK_BYTES)
  if (path === undefined) {
    run.check(!run.isFull, 'mounting a small disk needs root with CAP_SYS_ADMIN')
    return
  }
  const elsewhere = mkdtempSync(join(tmpdir(), 'powgate-room-'))
  run.defer(() => rmSync(elsewhere, { recursive: true }))
  const place = (kind: Kind) => join(kinds.includes(kind) ? path : elsewhere, kind)
  const scene = await Scene.set(run, place('log'), place('data'))
  await scene.ask(20)
  const filling = fill(path)
  const others = await scene.ask(run.count(5000, 2600))
  run.check(others === 0, `${words}: ${others} requests were not answered as usual`)
  run.check((await scene.admin('/metrics')) === 200, `${words}: the admin port does not answer`)
  const writtenBefore = requestsIn(place('log'))
  rmSync(filling)
  const startedAtMs = performance.now()
  await eventually(RECOVERY_MS, 'the log is written again', async () => {
    const isWritten = (await scene.ask(1)) === 0 && requestsIn(place('log')) > writtenBefore
    return isWritten && (await scene.admin('/readyz')) === 200
  })
  const recoveryMs = Math.round(performance.now() - startedAtMs)
  await sleep(1500)
  const lost = await scene.lost()
  const written = requestsIn(place('log'))
  // With full data, a worker may also lose its line that the store is back.
  const more = written + lost - scene.requests
  run.check(
    more >= 0 && more <= (kinds.includes('data') ? 4 : 0),
    `${words}: ${scene.requests} requests, but ${written} lines and ${lost} lost`,
  )
  run.check(lost > 0 === kinds.includes('log'), `${words}: ${lost} lines lost`)
  run.figure(
    words,
    `${scene.requests} requests, ${others} lost; ${lost} lines lost; again in ${recoveryMs} ms`,
  )
  await scene.end(words)
}

/** Lines of requests that are whole. */
function requestsIn(log: string): number {
  return readFileSync(log, 'utf8').split('"event":"refused"').length - 1
}

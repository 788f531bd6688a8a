/**
 * Entry of the process that measures one tree: its service under load, or its modules step by step. The tree's own modules make
 * the service, the site and the requests, because formats of nonces and tokens may differ. Both trees get this tree's load
 * generator.
 */

import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { type LoadResult, runLoad } from '../../test/harness/load/loops.ts'
import { type Endpoint, MARKERS } from '../../test/harness/load/traffic.ts'
import { carryOut } from '../../test/harness/processes.ts'
import type { StoreKind } from '../../test/harness/service.ts'
import { STEPS, type Step } from './steps.ts'

interface Times {
  readonly warmUpMs: number
  readonly measureMs: number
}

export interface LoadOrder extends Times {
  readonly type: 'load'
  readonly endpoint: Endpoint
  readonly store: StoreKind
}

export interface StepOrder extends Times {
  readonly type: 'step'
  readonly step: string
}

/** `check`: whether the tree has what is needed to load it; answered with nothing. */
export type Order = LoadOrder | StepOrder | { readonly type: 'check' }

type ServerModule = Pick<typeof import('../http/server.ts'), 'startService'>
type TrafficModule = Pick<typeof import('../../test/harness/load/traffic.ts'), 'buildTraffic'>
type Service = Awaited<ReturnType<ServerModule['startService']>>

const CONNECTIONS = 64
/** Requests are built for this rate; where they run out, what was measured until then counts. */
const REQUESTS_PER_SECOND_MAX = 100_000
const REQUESTS_MIN = 20_000
/** As many as memory allows. */
const REQUESTS_MAX = 600_000
/** Between looks at the clock. */
const STEPS_PER_LOOK = 200

const root = process.argv[2]!
const steps = new Map<string, Promise<Step>>()
let running: Promise<Service> | undefined
/** What a step returns must go somewhere, or the compiler may leave the step out. */
let lastResult: unknown

function load<Module>(path: string): Promise<Module> {
  return import(pathToFileURL(join(root, path)).href)
}

/** Throws if the tree has not got what bench/http has. */
async function loadTree(): Promise<ServerModule & TrafficModule> {
  // Where it was until the load generator moved to what tests share.
  const traffic = ['test/harness/load/traffic.ts', 'bench/http/traffic.ts']
  const { startService } = await load<ServerModule>('bench/http/server.ts')
  const { buildTraffic } = await load<TrafficModule>(
    traffic.find(path => existsSync(join(root, path))) ?? traffic[0]!,
  )
  for (const [name, value] of Object.entries({ startService, buildTraffic })) {
    if (typeof value !== 'function') throw new Error(`there is no ${name}`)
  }
  return { startService, buildTraffic }
}

async function measureLoad({ endpoint, store, warmUpMs, measureMs }: LoadOrder): Promise<LoadResult> {
  const { startService, buildTraffic } = await loadTree()
  running = startService(store, true)
  try {
    const { port, target, workerPids, primaryPid, redisPids } = await running
    const wanted = Math.ceil(((warmUpMs + measureMs) / 1000) * REQUESTS_PER_SECOND_MAX)
    const count = Math.max(REQUESTS_MIN, Math.min(REQUESTS_MAX, wanted))
    const traffic = buildTraffic({ endpoint, count, target, isForwarded: true })
    const pids = [...workerPids, primaryPid, ...redisPids]
    const marker = MARKERS[endpoint]
    const spec = { port, connections: CONNECTIONS, warmUpMs, measureMs, recycles: false, marker, pids }
    const result = await runLoad(spec, traffic)
    if (result.badAnswers > 0) throw new Error(`answered ${result.badAnswer.replaceAll(/\s*\n\s*/g, ' | ')}`)
    return result
  } finally {
    await stop()
  }
}

async function stop(): Promise<void> {
  const service = await running?.catch(() => undefined)
  running = undefined
  await service?.stop()
}

/** Nanoseconds of CPU time of a step, the compiler's and the collector's included: garbage is paid for too. */
async function measureStep({ step: name, warmUpMs, measureMs }: StepOrder): Promise<number> {
  let step = steps.get(name)
  if (step === undefined) steps.set(name, (step = STEPS[name]!(path => load(join('src', path)))))
  const { run, isRight } = await step
  if (!isRight(run())) throw new Error('gives something else than it should')
  repeat(run, warmUpMs)
  const before = process.cpuUsage()
  const count = repeat(run, measureMs)
  const { user, system } = process.cpuUsage(before)
  if (!isRight(lastResult)) throw new Error('gives something else than it should after a while')
  return ((user + system) * 1000) / count
}

/** @returns how many steps were done */
function repeat(run: () => unknown, ms: number): number {
  const endMs = performance.now() + ms
  let count = 0
  do {
    for (let step = 0; step < STEPS_PER_LOOK; step++) lastResult = run()
    count += STEPS_PER_LOOK
  } while (performance.now() < endMs)
  return count
}

async function act(order: Order): Promise<unknown> {
  switch (order.type) {
    case 'check':
      await loadTree()
      return undefined
    case 'load':
      return await measureLoad(order)
    case 'step':
      return await measureStep(order)
  }
}

carryOut(act, stop)

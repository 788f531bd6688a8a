/**
 * Measures the services of both trees under the load of bench/http: CPU time per request of their processes and of Redis.
 */

import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { StoreKind } from '../../test/harness/service.ts'
import type { LoadResult } from '../http/load.ts'
import type { Endpoint } from '../http/traffic.ts'
import { UsageError } from '../support/arguments.ts'
import { type Case, measurePair, type Side, SideError } from './cases.ts'
import type { Options } from './options.ts'
import { startTreeProcess, type TreeProcess } from './tree-process.ts'

/** To a tree's process. `check`: whether the tree has what is needed to load it; answered with nothing. */
export type HttpOrder = { readonly type: 'check' } | MeasureOrder

export interface MeasureOrder {
  readonly type: 'measure'
  readonly endpoint: Endpoint
  readonly store: StoreKind
  readonly connections: number
  readonly warmUpMs: number
  readonly measureMs: number
}

const CHILD = fileURLToPath(new URL('./http-child.ts', import.meta.url))
const CONNECTIONS = 64
/** Load before what is measured, as a share of it. */
const WARM_UP_SHARE = 0.5
/** Files of a revision that this bench cannot do without. */
const NEEDED = ['bench/http/server.ts', 'bench/http/traffic.ts'] as const

const NO_GENERATOR = 'has no load generator to compare with'

interface Load {
  readonly endpoint: Endpoint
  readonly store: StoreKind
  readonly names: { readonly service: string; readonly redis: string | undefined }
  readonly pairs: { readonly old: LoadResult; readonly new: LoadResult }[]
  problem?: { readonly side: Side; readonly text: string }
}

/** Throws UsageError if the revision cannot be loaded. */
export function checkLoadGenerator(root: string, revision: string): void {
  if (!NEEDED.every(file => existsSync(join(root, file)))) {
    throw new UsageError(`${revision} ${NO_GENERATOR} (--only micro does without)`)
  }
}

/** The names of all cases that the options ask for. */
export function httpNames(options: Options): string[] {
  return loadsOf(options).flatMap(({ names }) => wanted(options, [names.service, names.redis ?? []].flat()))
}

export async function compareHttp(
  options: Options,
  roots: Readonly<Record<Side, string>>,
  signal: AbortSignal,
  tell: (line: string) => void,
): Promise<Case[]> {
  const loads = loadsOf(options)
  if (loads.length === 0) return []
  const start = (root: string) => startTreeProcess<HttpOrder, LoadResult | undefined>(CHILD, root)
  const sides = { old: start(roots.old), new: start(roots.new) }
  const stop = () => Promise.all([sides.old.stop(), sides.new.stop()])
  signal.addEventListener('abort', stop, { once: true })
  try {
    await sides.old.ask({ type: 'check' }).catch((error: Error) => {
      signal.throwIfAborted()
      throw new UsageError(`${options.revision} ${NO_GENERATOR}: ${error.message}`)
    })
    for (let pair = 0; pair < options.repeat; pair++) {
      for (const load of loads) {
        signal.throwIfAborted()
        if (load.problem !== undefined) continue
        await measureLoad(load, pair, options, sides)
        signal.throwIfAborted()
        tell(progress(load, pair, options))
      }
    }
  } finally {
    signal.removeEventListener('abort', stop)
    await stop()
  }
  return loads.flatMap(load => casesOf(load, options))
}

function loadsOf(options: Options): Load[] {
  return options.endpoints
    .flatMap(endpoint => options.stores.map(store => ({ endpoint, store })))
    .map(({ endpoint, store }) => {
      const prefix = `/${endpoint} on ${store}`
      const redis = store === 'redis' ? `${prefix}, Redis` : undefined
      return { endpoint, store, names: { service: `${prefix}, service`, redis }, pairs: [] }
    })
    .filter(({ names }) => wanted(options, [names.service, names.redis ?? []].flat()).length > 0)
}

function wanted({ filter }: Options, names: readonly string[]): string[] {
  return names.filter(name => name.includes(filter))
}

async function measureLoad(
  load: Load,
  pair: number,
  { seconds }: Options,
  sides: Readonly<Record<Side, TreeProcess<HttpOrder, LoadResult | undefined>>>,
): Promise<void> {
  const measureMs = seconds * 1000
  const { endpoint, store } = load
  const warmUpMs = measureMs * WARM_UP_SHARE
  const order = { type: 'measure', endpoint, store, connections: CONNECTIONS, warmUpMs, measureMs } as const
  try {
    load.pairs.push(
      await measurePair(pair, async side => {
        const result = await sides[side].ask(order).catch((error: Error) => {
          throw new SideError(side, error)
        })
        return result!
      }),
    )
  } catch (error) {
    if (!(error instanceof SideError)) throw error
    load.problem = { side: error.side, text: error.message }
  }
}

function progress({ names, store, pairs, problem }: Load, pair: number, { repeat }: Options): string {
  const head = `${names.service}, pair ${pair + 1} of ${repeat}`
  if (problem !== undefined) return `${head}: ${problem.side} failed: ${problem.text}`
  const [old, now] = [pairs.at(-1)!.old, pairs.at(-1)!.new].map(result => cpuUs(result, 'service', store))
  return `${head}: ${old!.toFixed(2)} -> ${now!.toFixed(2)} us`
}

/** Redis, if it is the store, is the last of the processes. */
function cpuUs({ usages, answers }: LoadResult, part: 'service' | 'redis', store: StoreKind): number {
  const ofRedis = store === 'redis' ? usages.slice(-1) : []
  const measured = part === 'redis' ? ofRedis : usages.slice(0, usages.length - ofRedis.length)
  return (measured.reduce((sum, { cpuMs }) => sum + cpuMs, 0) / answers) * 1000
}

function casesOf({ names, store, pairs, problem }: Load, options: Options): Case[] {
  return (['service', 'redis'] as const).flatMap((part): Case[] => {
    const name = names[part]
    if (name === undefined || !name.includes(options.filter)) return []
    const head = { part: 'http', name, unit: 'us' } as const
    if (problem !== undefined) return [{ ...head, olds: [], news: [], problem }]
    return [
      {
        ...head,
        olds: pairs.map(pair => cpuUs(pair.old, part, store)),
        news: pairs.map(pair => cpuUs(pair.new, part, store)),
      },
    ]
  })
}

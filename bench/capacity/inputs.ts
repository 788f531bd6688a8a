/** Reads the JSON files that the other benches write, and checks their form. */

import { readFileSync } from 'node:fs'
import { UsageError } from '../../test/harness/command-line.ts'
import { ENDPOINTS } from '../../test/harness/load/traffic.ts'
import type { Spread } from '../../test/harness/measure.ts'
import type { StoreKind } from '../../test/harness/service.ts'
import type { EndpointCost, Measurements, StoreCosts } from './model.ts'

export const SOURCES = ['http', 'micro', 'solver', 'store'] as const
export type Source = (typeof SOURCES)[number]

/** Part of the measurements, by the bench that they come from. */
type Reader = (figures: unknown) => Partial<Measurements>

const READERS: Readonly<Record<Source, Reader>> = { http, solver, store, micro }

/** The step of the micro bench that is a whole verification. */
const VERIFICATION = 'whole verification, no store'

/** Reads all files. Throws UsageError naming the option and what is wrong. */
export function readMeasurements(files: Readonly<Partial<Record<Source, string>>>): Measurements {
  const parts = Object.entries(files).map(([source, file]) => read(source as Source, file))
  return Object.assign({ http: {} }, ...parts)
}

function read(source: Source, file: string): Partial<Measurements> {
  try {
    return READERS[source](JSON.parse(readFileSync(file, 'utf8')))
  } catch (error) {
    throw new UsageError(`--${source}: ${file}: ${(error as Error).message.replaceAll('\n', ' ')}`)
  }
}

function http(figures: unknown): Partial<Measurements> {
  const cases = listAt(figures, 'cases')
  const stores = (['embedded', 'redis'] as const).flatMap(kind => {
    const costs = storeCosts(cases, kind)
    return costs === undefined ? [] : [[kind, costs] as const]
  })
  if (stores.length === 0) throw new Error('expected all three endpoints on at least one store in "cases"')
  return { http: Object.fromEntries(stores) }
}

/** undefined if the store was not measured with all endpoints. */
function storeCosts(cases: readonly unknown[], kind: StoreKind): StoreCosts | undefined {
  const costs: Record<string, EndpointCost> = {}
  for (const endpoint of ENDPOINTS) {
    const found = cases.find(one => at(one, 'endpoint') === endpoint && at(one, 'server') === kind)
    if (found === undefined) return undefined
    if (at(found, 'isOk') === false) throw new Error(`the bench failed at ${endpoint} on ${kind}`)
    const workerUs = spreadAt(found, 'figures.cpuUs')
    costs[endpoint] =
      kind === 'redis' ? { workerUs, redisUs: spreadAt(found, 'figures.redisUs') } : { workerUs }
  }
  return costs as StoreCosts
}

function solver(figures: unknown): Partial<Measurements> {
  const row = listAt(figures, 'rates').find(
    one => at(one, 'contender') === 'simd' && at(one, 'threads') === 1,
  )
  if (row === undefined) throw new Error('expected the rate of "simd" on 1 thread in "rates"')
  return { browserHashesPerSecond: spreadAt(row, 'hashesPerSecond') }
}

function store(figures: unknown): Partial<Measurements> {
  const path = 'memory.bytesPerActiveAddress'
  const typical = numberAt(figures, `${path}.typical`)
  return { bytesPerActiveAddress: { typical, atLimits: numberAt(figures, `${path}.atLimits`) } }
}

function micro(figures: unknown): Partial<Measurements> {
  const row = listAt(figures, 'rows').find(one => at(one, 'name') === VERIFICATION)
  if (row === undefined) throw new Error(`expected "${VERIFICATION}" in "rows"`)
  const { median, min, max } = spreadAt(row, 'ways.0.cpuNs')
  return { verificationUs: { median: median / 1000, min: min / 1000, max: max / 1000 } }
}

/** @param path names, or indexes of lists, with dots between */
function at(value: unknown, path: string): unknown {
  return path.split('.').reduce<unknown>((inner, name) => {
    return typeof inner === 'object' && inner !== null ? (inner as Record<string, unknown>)[name] : undefined
  }, value)
}

function listAt(value: unknown, path: string): readonly unknown[] {
  const list = at(value, path)
  if (!Array.isArray(list)) throw new Error(`expected a list "${path}"`)
  return list
}

function numberAt(value: unknown, path: string): number {
  const number = at(value, path)
  if (typeof number !== 'number' || !Number.isFinite(number) || number <= 0) {
    throw new Error(`expected a number above 0 at "${path}", got ${JSON.stringify(number)}`)
  }
  return number
}

function spreadAt(value: unknown, path: string): Spread {
  const [median, min, max] = ['median', 'min', 'max'].map(name => numberAt(value, `${path}.${name}`))
  return { median: median!, min: min!, max: max! }
}

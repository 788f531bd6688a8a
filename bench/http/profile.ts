/** Where a worker's CPU time goes: a CPU profile, and the own time of its functions in groups. DevTools tells the functions. */

import { mkdirSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { type Cell, left, percent, right, table } from '../report/report.ts'

/** As DevTools and speedscope read it (Chrome DevTools Protocol, Profiler.Profile). */
export interface Profile {
  readonly nodes: readonly {
    readonly id: number
    readonly callFrame: Frame
    readonly children?: readonly number[]
  }[]
  readonly samples: readonly number[]
  readonly timeDeltas: readonly number[]
}

interface Frame {
  readonly functionName: string
  readonly url: string
}

export interface ProfileReport {
  readonly name: string
  readonly file: string
  /** Shares of the time that the thread was busy, largest first. */
  readonly groups: readonly Share[]
}

interface Share {
  readonly name: string
  readonly share: number
}

/** Git ignores it. */
const FOLDER = fileURLToPath(new URL('../dist/profiles/', import.meta.url))

/** Functions of uWebSockets.js, which the profiler names and places nowhere; `collect` is its `cork`, which sends the answer. */
const OF_HTTP =
  /^(end|tryEnd|cork|collect|writeStatus|writeHeader|onData|onAborted|getHeader|getUrl|getQuery|getMethod|forEach|getRemoteAddress|close)$/
const OF_CRYPTO = /Digest|[hH]ash|[hH]mac|timingSafeEqual|randomFill/
/** By the file's path; the first that fits. */
const GROUPS: readonly (readonly [group: string, path: RegExp])[] = [
  ['crypto', /^node:internal\/crypto/],
  [
    'store',
    /\/dist\/store\/|node_modules\/(lmdb|ioredis|redis-parser|denque|msgpackr|ordered-binary|cluster-key-slot)\/|^node:(net|internal\/stream)/,
  ],
  ['http', /\/dist\/(http\/(?!schemas)|routes|server)/],
  ['parsing and domain', /\/dist\/(domain|endpoints|protocol|http\/schemas|sites)/],
  [
    'log and metrics',
    /\/dist\/(log|metrics|trace)|node_modules\/(pino|sonic-boom|quick-format-unescaped|safe-stable-stringify)/,
  ],
]

/** Writes the profile to a file, and sums it up. */
export function profileReport(name: string, profile: Profile): ProfileReport {
  mkdirSync(FOLDER, { recursive: true })
  const path = `${FOLDER}${name.replaceAll(' ', '-')}.cpuprofile`
  writeFileSync(path, JSON.stringify(profile))
  const stackOf = stacks(profile)
  const groups = new Map<string, number>()
  let busyUs = 0
  for (const [index, id] of profile.samples.entries()) {
    const us = profile.timeDeltas[index]!
    const stack = stackOf(id)
    // The profiler's own work is none of the worker's.
    if (stack[0]!.functionName === '(idle)' || stack.some(frame => frame.url === 'node:inspector')) continue
    busyUs += us
    const group = groupOf(stack)
    groups.set(group, (groups.get(group) ?? 0) + us)
  }
  const shares = [...groups].map(([of, us]) => ({ name: of, share: us / busyUs }))
  return { name, file: path, groups: shares.sort((a, b) => b.share - a.share) }
}

/** The frames of a node: its own, its caller's, and so on. */
function stacks({ nodes }: Profile): (id: number) => Frame[] {
  const frames = new Map(nodes.map(({ id, callFrame }) => [id, callFrame]))
  const callers = new Map(
    nodes.flatMap(({ id, children = [] }) => children.map(child => [child, id] as const)),
  )
  const stackOf = (id: number): Frame[] => {
    const caller = callers.get(id)
    return [frames.get(id)!, ...(caller === undefined ? [] : stackOf(caller))]
  }
  return stackOf
}

/** Native functions and those of Node.js work for whoever calls them, but for hashes and answers. */
function groupOf(stack: readonly Frame[]): string {
  const { functionName, url } = stack[0]!
  if (functionName === '(garbage collector)') return 'collection'
  if (url === '' && OF_CRYPTO.test(functionName)) return 'crypto'
  if (url === '' && OF_HTTP.test(functionName)) return 'http'
  for (const frame of stack) {
    const group = GROUPS.find(([, path]) => path.test(frame.url))?.[0]
    if (group !== undefined) return group
  }
  return 'native'
}

export function profileTables(profiles: readonly ProfileReport[]): string[] {
  return profiles.map(({ name, file, groups }) => {
    const columns: Cell<Share>[] = [
      [left(name), one => one.name],
      [right('share'), one => percent(one.share)],
    ]
    return table(`${name}: where the worker's time goes (${file})`, columns, groups)
  })
}

export const PROFILE_LEGEND = `\
Shares of the CPU time of the worker's thread at full load, by samples. A native function, or one of Node.js, counts for the part that
calls it. native: called by none, such as uWebSockets.js as it reads from sockets. Open the files with DevTools (Performance, Load profile) or speedscope.`

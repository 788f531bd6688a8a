/**
 * What was counted in each step of time, packed so that a day needs little memory. The input is totals that only grow. A step
 * keeps the increases that are not zero:
 *
 *   | pairs | counter, count | counter, count | ... | pairs | counter, count | ...
 *     the whole service                               sites[0], sites[1] ...
 *
 * 32 bits each. A site that uses every counter takes 0.7 KB a step, a usual one 0.1 KB.
 */

import { OTHER_SITES } from './history-view.ts'
import type { Restarts, SiteStats, StatsSnapshot } from './snapshot.ts'

/** Gauges of a step: the worst value seen during the step. */
export interface StepGauges {
  readonly storeUp: 0 | 1
  readonly workers: number
  readonly lagSeconds: number
  readonly residentBytes: number
}

export interface Step {
  readonly fromMs: number
  readonly toMs: number
  readonly gauges: StepGauges
  /** Site keys, busiest first. */
  readonly sites: readonly string[]
  /** Requests of each of these sites, by its counters. */
  readonly requests: readonly number[]
  readonly packed: Uint32Array
}

type Content = Pick<Step, 'sites' | 'requests' | 'packed'>

/** What is counted: by the workers, and by the primary process about them. */
export interface Counted {
  readonly snapshot: StatsSnapshot
  readonly restarts: Restarts
}

/** Sites with numbers of their own in a step; all others are added up. */
export const STEP_SITES_MAX = 50
/** Names come from closed lists, about 400; this limits the effect of a programming error. */
const COUNTERS_MAX = 4096
const COUNT_MAX = 2 ** 32 - 1

/** Small numbers that stand for the counters' names. */
export class CounterNames {
  readonly #ids = new Map<string, number>()
  readonly #names: string[] = []

  /** undefined: there are too many names. */
  idOf(name: string): number | undefined {
    const known = this.#ids.get(name)
    if (known !== undefined || this.#names.length === COUNTERS_MAX) return known
    const id = this.#names.push(name) - 1
    this.#ids.set(name, id)
    return id
  }

  nameOf(id: number): string {
    return this.#names[id]!
  }
}

type Increases = Map<string, number>

/** Fields that are no counters, are fractions (which would be cut off), or are not shown. */
const NOT_COUNTED = new Set(['bounds', 'gauges', 'sites', 'scoreSum', 'cpuMicroseconds'])

/**
 * Adds the increases, as `<name>` or `<name>/<key>`. A value smaller than before was reset, so it grew from zero. Unknown
 * fields are counted too; missing fields are not.
 */
function addIncreases(into: Increases, current: unknown, before: unknown, name = ''): void {
  if (typeof current === 'number') {
    const base = typeof before === 'number' && before <= current ? before : 0
    const increase = Math.floor(current - base)
    if (increase > 0) into.set(name, (into.get(name) ?? 0) + increase)
  } else if (typeof current === 'object' && current !== null) {
    const earlier = (before ?? {}) as Record<string, unknown>
    for (const [key, value] of Object.entries(current)) {
      if (!NOT_COUNTED.has(key)) addIncreases(into, value, earlier[key], name === '' ? key : `${name}/${key}`)
    }
  }
}

const REQUESTS = new Set(['challenges', 'passed', 'failed', 'redeemed'])

function requestsOf(increases: Increases): number {
  let requests = 0
  for (const [name, count] of increases) {
    if (REQUESTS.has(name) || name.startsWith('refused/')) requests += count
  }
  return requests
}

export function packStep(names: CounterNames, current: Counted, before: Counted | undefined): Content {
  const total: Increases = new Map()
  addIncreases(total, current.snapshot, before?.snapshot)
  addIncreases(total, current.restarts, before?.restarts, 'restarts')
  const sites = siteIncreases(current.snapshot.sites ?? {}, before?.snapshot.sites ?? {})
  const words: number[] = []
  for (const increases of [total, ...sites.values()]) {
    const start = words.push(0) - 1
    for (const [name, count] of increases) {
      const id = names.idOf(name)
      if (id !== undefined) words.push(id, Math.min(count, COUNT_MAX))
    }
    words[start] = (words.length - start - 1) / 2
  }
  return {
    sites: [...sites.keys()],
    requests: [...sites.values()].map(requestsOf),
    packed: Uint32Array.from(words),
  }
}

/** Sites beyond STEP_SITES_MAX are added up under OTHER_SITES. */
function siteIncreases(
  current: Readonly<Record<string, SiteStats>>,
  before: Readonly<Record<string, SiteStats>>,
): Map<string, Increases> {
  const active: { siteKey: string; increases: Increases; requests: number }[] = []
  for (const [siteKey, stats] of Object.entries(current)) {
    const increases: Increases = new Map()
    addIncreases(increases, stats, before[siteKey])
    if (increases.size > 0) active.push({ siteKey, increases, requests: requestsOf(increases) })
  }
  active.sort((one, other) => other.requests - one.requests)
  const others: Increases = new Map()
  const kept = new Map<string, Increases>()
  for (const { siteKey, increases } of active) {
    if (siteKey !== '' && kept.size < STEP_SITES_MAX) kept.set(siteKey, increases)
    else for (const [name, count] of increases) others.set(name, (others.get(name) ?? 0) + count)
  }
  return others.size === 0 ? kept : kept.set(OTHER_SITES, others)
}

/** Passes on the counts of a step, of the whole service or of a site; none if the site had no requests. */
export function readStep(
  { sites, packed }: Step,
  site: string | null,
  take: (counter: number, count: number) => void,
): void {
  const group = site === null ? 0 : sites.indexOf(site) + 1
  if (site !== null && group === 0) return
  let at = 0
  for (let skipped = 0; skipped < group; skipped++) at += 1 + 2 * packed[at]!
  const end = at + 1 + 2 * packed[at]!
  for (at++; at < end; at += 2) take(packed[at]!, packed[at + 1]!)
}

/** Steps of equal length, as many as a range needs. The last step grows until it is full. */
export class StepRing {
  readonly #stepMs: number
  readonly #stepsMax: number
  readonly #slackMs: number
  readonly #names: CounterNames
  #steps: Step[] = []
  /** The end of the last full step, and what had been counted by then. */
  #fromMs: number
  #before: Counted | undefined
  #isOpen = false

  /** @param slackMs how much shorter a full step may be: timers are not exact */
  constructor(
    { stepMs, stepsMax, slackMs }: { stepMs: number; stepsMax: number; slackMs: number },
    startedAtMs: number,
    names: CounterNames,
  ) {
    this.#stepMs = stepMs
    this.#stepsMax = stepsMax
    this.#slackMs = slackMs
    this.#fromMs = startedAtMs
    this.#names = names
  }

  get steps(): readonly Step[] {
    return this.#steps
  }

  add(nowMs: number, counted: Counted, gauges: StepGauges): void {
    const open = this.#isOpen ? this.#steps.pop() : undefined
    const worst = open === undefined ? gauges : worstOf(open.gauges, gauges)
    this.#steps.push({
      fromMs: this.#fromMs,
      toMs: nowMs,
      gauges: worst,
      ...packStep(this.#names, counted, this.#before),
    })
    if (this.#steps.length > this.#stepsMax) this.#steps.shift()
    this.#isOpen = nowMs - this.#fromMs < this.#stepMs - this.#slackMs
    if (this.#isOpen) return
    this.#fromMs = nowMs
    this.#before = counted
  }

  /** Shifts all steps, because the clock was set: the age of each step stays the same. */
  shift(byMs: number): void {
    this.#fromMs += byMs
    this.#steps = this.#steps.map(step => ({
      ...step,
      fromMs: step.fromMs + byMs,
      toMs: step.toMs + byMs,
    }))
  }
}

function worstOf(one: StepGauges, other: StepGauges): StepGauges {
  return {
    storeUp: one.storeUp === 1 && other.storeUp === 1 ? 1 : 0,
    workers: Math.min(one.workers, other.workers),
    lagSeconds: Math.max(one.lagSeconds, other.lagSeconds),
    residentBytes: Math.max(one.residentBytes, other.residentBytes),
  }
}

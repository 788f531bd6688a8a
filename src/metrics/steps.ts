/**
 * What was counted in each step of time, packed so that a day needs little memory. The input is flat records of totals that
 * only grow. A step keeps the increases that are not zero:
 *
 *   | pairs | counter, count | counter, count | ... | pairs | counter, count | ...
 *     the whole service                               sites[0], sites[1] ...
 *
 * 32 bits each. A site that uses every counter takes 0.7 KB a step, a usual one 0.1 KB.
 */

import { OTHER_SITES } from './history-view.ts'
import type { Snapshot } from './stats.ts'
import { keyOf, metricOf, SITE_REQUESTS, type Values } from './table.ts'

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

/** Sites with numbers of their own in a step; all others are added up. */
export const STEP_SITES_MAX = 50
/** Names come from closed lists, about 500; this limits the effect of a programming error. */
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

/** A number smaller than before was reset, so it grew from zero. */
function increasesOf(current: Readonly<Values>, before: Readonly<Values> = {}): Increases {
  const increases: Increases = new Map()
  for (const name in current) {
    const now = current[name]!
    const base = before[name] ?? 0
    const increase = base <= now ? now - base : now
    if (increase > 0) increases.set(name, increase)
  }
  return increases
}

const REQUESTS: ReadonlySet<string> = new Set(SITE_REQUESTS)

function requestsOf(increases: Increases): number {
  let requests = 0
  for (const [name, count] of increases) if (REQUESTS.has(keyOf(name))) requests += count
  return requests
}

export function packStep(names: CounterNames, current: Snapshot, before: Snapshot | undefined): Content {
  const total = increasesOf(current.values, before?.values)
  for (const name of total.keys()) if (metricOf(name)?.history !== true) total.delete(name)
  const sites = siteIncreases(current.sites, before?.sites ?? {})
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
function siteIncreases(current: Snapshot['sites'], before: Snapshot['sites']): Map<string, Increases> {
  const active = Object.entries(current)
    .map(([siteKey, values]) => {
      const increases = increasesOf(values, before[siteKey])
      return { siteKey, increases, requests: requestsOf(increases) }
    })
    .filter(({ increases }) => increases.size > 0)
    .sort((one, other) => other.requests - one.requests)
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
  #before: Snapshot | undefined
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

  add(nowMs: number, counted: Snapshot, gauges: StepGauges): void {
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

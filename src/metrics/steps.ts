/**
 * What was counted in each of the last steps of time: for every counter one array, with a number for each step. The arrays are
 * rings, so a step costs no memory of its own. (1,000 series take 0.7 MB for half an hour of steps and 2.9 MB for a day.)
 */

import { OTHER_SITES } from './history-view.ts'

/** Gauges of a step: the worst value seen during the step. */
export interface StepGauges {
  readonly storeUp: 0 | 1
  readonly workers: number
  readonly lagSeconds: number
  readonly residentBytes: number
}

interface Step {
  readonly fromMs: number
  readonly toMs: number
  readonly gauges: StepGauges
}

/** How much counters have grown, by flat name. */
export type Increases = ReadonlyMap<string, number>

/** Numbers of the steps, by flat name. A step's place in an array is its number, modulo the array's length. */
export type Rings = ReadonlyMap<string, Uint32Array>

/** Sites that have numbers of their own; all others are added up under OTHER_SITES. */
export const STEP_SITES_MAX = 200

const NOTHING: Rings = new Map()

/** Steps of equal length, as many as a range needs. The last step grows until it is full. */
export class Steps {
  readonly #stepMs: number
  readonly #stepsMax: number
  readonly #slackMs: number
  readonly #all = new Map<string, Uint32Array>()
  readonly #sites = new Map<string, Map<string, Uint32Array>>()
  #steps: Step[] = []
  /** Steps since the start. */
  #count = 0
  #fromMs: number

  /** @param slackMs how much shorter a full step may be: timers are not exact */
  constructor(
    { stepMs, stepsMax, slackMs }: { stepMs: number; stepsMax: number; slackMs: number },
    startedAtMs: number,
  ) {
    this.#stepMs = stepMs
    this.#stepsMax = stepsMax
    this.#slackMs = slackMs
    this.#fromMs = startedAtMs
  }

  /** Oldest first. */
  get steps(): readonly Step[] {
    return this.#steps
  }

  /** Places of the last `count` steps in the arrays, oldest first. */
  places(count = this.#steps.length): readonly number[] {
    return Array.from({ length: count }, (_, index) => (this.#count - count + index) % this.#stepsMax)
  }

  /** @param site null: the whole service. Empty if the site has no numbers. */
  rings(site: string | null): Rings {
    return site === null ? this.#all : (this.#sites.get(site) ?? NOTHING)
  }

  /** Those that have numbers. */
  get siteKeys(): readonly string[] {
    return [...this.#sites.keys()]
  }

  /** Adds what was counted since the last call. */
  add(nowMs: number, gauges: StepGauges, all: Increases, sites: ReadonlyMap<string, Increases>): void {
    const last = this.#steps.at(-1)
    if (last !== undefined && last.toMs > this.#fromMs)
      this.#steps[this.#steps.length - 1] = { ...last, toMs: nowMs, gauges: worstOf(last.gauges, gauges) }
    else this.#begin({ fromMs: this.#fromMs, toMs: nowMs, gauges })
    this.#addTo(this.#all, all)
    for (const [siteKey, increases] of sites)
      if (increases.size > 0) this.#addTo(this.#site(siteKey), increases)
    if (nowMs - this.#fromMs >= this.#stepMs - this.#slackMs) this.#fromMs = nowMs
  }

  /** Shifts all steps, because the clock was set: the age of each step stays the same. */
  shift(byMs: number): void {
    this.#fromMs += byMs
    this.#steps = this.#steps.map(({ fromMs, toMs, gauges }) => ({
      fromMs: fromMs + byMs,
      toMs: toMs + byMs,
      gauges,
    }))
  }

  /** A step takes the place of the oldest one. Sites that had no request in any step make room for others. */
  #begin(step: Step): void {
    const place = this.#count++ % this.#stepsMax
    this.#steps.push(step)
    if (this.#steps.length > this.#stepsMax) this.#steps.shift()
    for (const ring of this.#all.values()) ring[place] = 0
    for (const [siteKey, rings] of this.#sites) {
      for (const ring of rings.values()) ring[place] = 0
      if ([...rings.values()].every(ring => ring.every(count => count === 0))) this.#sites.delete(siteKey)
    }
  }

  #site(siteKey: string): Map<string, Uint32Array> {
    const isRoom = siteKey !== '' && this.#sites.size < STEP_SITES_MAX
    const name = this.#sites.has(siteKey) || isRoom ? siteKey : OTHER_SITES
    const rings = this.#sites.get(name) ?? new Map()
    this.#sites.set(name, rings)
    return rings
  }

  #addTo(rings: Map<string, Uint32Array>, increases: Increases): void {
    const place = (this.#count - 1) % this.#stepsMax
    for (const [name, count] of increases) {
      let ring = rings.get(name)
      if (ring === undefined) rings.set(name, (ring = new Uint32Array(this.#stepsMax)))
      ring[place]! += count
    }
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

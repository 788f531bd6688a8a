/** Counts for each recent step of time. Each counter has a ring with a number for each step: 1,000 counters of a day take 2.9 MB. */

import { Columns } from './columns.ts'
import { OTHER_SITES } from './data.ts'

/** Each is the worst value during the step; `storeUp`, 1 or 0, is null if no worker ran to tell. */
export interface StepGauges {
  readonly storeUp: number | null
  readonly lagSeconds: number
}

interface Step {
  readonly fromMs: number
  readonly toMs: number
  readonly gauges: StepGauges
}

/** Growth of each counter, by its flat name. */
export type Increases = ReadonlyMap<string, number>

/** A counter's ring, by its flat name. */
type Rings = Map<string, Uint32Array>

export class Steps {
  readonly #stepsMax: number
  readonly #addsPerStep: number
  readonly #all: Rings = new Map()
  readonly #sites = new Map<string, Rings>()
  readonly #steps: Step[] = []
  #stepsBegun = 0
  #adds = 0
  #lastMs: number

  /**
   * @param stepsMax a new step replaces the oldest one
   * @param addsPerStep so many calls of `add` make one step
   */
  constructor(stepsMax: number, addsPerStep: number, startedAtMs: number) {
    this.#stepsMax = stepsMax
    this.#addsPerStep = addsPerStep
    this.#lastMs = startedAtMs
  }

  get steps(): readonly Step[] {
    return this.#steps
  }

  /**
   * @param site null for all sites together
   * @param count of the last steps
   */
  columns(site: string | null, count = this.#steps.length): Columns {
    const first = this.#stepsBegun - count
    const ringIndexes = Array.from({ length: count }, (_, step) => (first + step) % this.#stepsMax)
    return new Columns((site === null ? this.#all : this.#sites.get(site)) ?? new Map(), ringIndexes)
  }

  get siteKeys(): readonly string[] {
    return [...this.#sites.keys()]
  }

  add(nowMs: number, gauges: StepGauges, all: Increases, sites: ReadonlyMap<string, Increases>): void {
    if (this.#adds++ % this.#addsPerStep === 0) this.#begin({ fromMs: this.#lastMs, toMs: nowMs, gauges })
    else {
      const last = this.#steps.pop()!
      this.#steps.push({ ...last, toMs: nowMs, gauges: worstOf(last.gauges, gauges) })
    }
    this.#addTo(this.#all, all)
    for (const [siteKey, increases] of sites)
      if (increases.size > 0) this.#addTo(this.#ringsOf(siteKey), increases)
    this.#lastMs = nowMs
  }

  /** Replaces the oldest step, and forgets sites that counted nothing in any step. */
  #begin(step: Step): void {
    const ringIndex = this.#stepsBegun++ % this.#stepsMax
    this.#steps.push(step)
    if (this.#steps.length > this.#stepsMax) this.#steps.shift()
    for (const ring of this.#all.values()) ring[ringIndex] = 0
    for (const [siteKey, rings] of this.#sites) {
      for (const ring of rings.values()) ring[ringIndex] = 0
      if ([...rings.values()].every(ring => ring.every(count => count === 0))) this.#sites.delete(siteKey)
    }
  }

  /** @param siteKey empty for the sites that the workers have added up (SITES_MAX in metrics/table.ts) */
  #ringsOf(siteKey: string): Rings {
    const name = siteKey === '' ? OTHER_SITES : siteKey
    const rings: Rings = this.#sites.get(name) ?? new Map()
    this.#sites.set(name, rings)
    return rings
  }

  #addTo(rings: Rings, increases: Increases): void {
    const ringIndex = (this.#stepsBegun - 1) % this.#stepsMax
    for (const [name, count] of increases) {
      let ring = rings.get(name)
      if (ring === undefined) rings.set(name, (ring = new Uint32Array(this.#stepsMax)))
      ring[ringIndex]! += count
    }
  }
}

function worstOf(one: StepGauges, other: StepGauges): StepGauges {
  return {
    storeUp: one.storeUp === 0 ? 0 : (other.storeUp ?? one.storeUp),
    lagSeconds: Math.max(one.lagSeconds, other.lagSeconds),
  }
}

/** Counts for each recent step of time: each counter has a ring of numbers. 1,000 counters of a day take 2.9 MB. */

import { OTHER_SITES } from './history-view.ts'

/** The worst value during the step. */
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

interface StepSize {
  readonly stepMs: number
  readonly stepsMax: number
  /** Timers are inexact, so a full step may be shorter by this. */
  readonly slackMs: number
}

/** Growth of each counter, by its flat name. */
export type Increases = ReadonlyMap<string, number>

/** A ring for each flat name. A place is a step's number modulo the length. */
export type Rings = ReadonlyMap<string, Uint32Array>

/** Others are added up under OTHER_SITES. */
export const STEP_SITES_MAX = 200

const NOTHING: Rings = new Map()

/** The last step grows until it is full. */
export class Steps {
  readonly #size: StepSize
  readonly #all = new Map<string, Uint32Array>()
  readonly #sites = new Map<string, Map<string, Uint32Array>>()
  readonly #asked: ReadonlySet<string>
  #steps: Step[] = []
  #count = 0
  #fromMs: number

  /** @param asked sites with numbers of their own in any case */
  constructor(size: StepSize, startedAtMs: number, asked: ReadonlySet<string>) {
    this.#size = size
    this.#asked = asked
    this.#fromMs = startedAtMs
  }

  get steps(): readonly Step[] {
    return this.#steps
  }

  /** Positions of the last `count` steps. */
  places(count = this.#steps.length): readonly number[] {
    return Array.from({ length: count }, (_, index) => (this.#count - count + index) % this.#size.stepsMax)
  }

  /** @param site null: all */
  rings(site: string | null): Rings {
    return site === null ? this.#all : (this.#sites.get(site) ?? NOTHING)
  }

  isApart(siteKey: string): boolean {
    return this.#sites.has(siteKey) || !this.#sites.has(OTHER_SITES)
  }

  get siteKeys(): readonly string[] {
    return [...this.#sites.keys()]
  }

  add(nowMs: number, gauges: StepGauges, all: Increases, sites: ReadonlyMap<string, Increases>): void {
    const last = this.#steps.at(-1)
    if (last !== undefined && last.toMs > this.#fromMs)
      this.#steps[this.#steps.length - 1] = { ...last, toMs: nowMs, gauges: worstOf(last.gauges, gauges) }
    else this.#begin({ fromMs: this.#fromMs, toMs: nowMs, gauges })
    this.#addTo(this.#all, all)
    for (const [siteKey, increases] of sites)
      if (increases.size > 0) this.#addTo(this.#site(siteKey), increases)
    if (nowMs - this.#fromMs >= this.#size.stepMs - this.#size.slackMs) this.#fromMs = nowMs
  }

  /** Keeps the age of every step when the clock was set. */
  shift(byMs: number): void {
    this.#fromMs += byMs
    this.#steps = this.#steps.map(({ fromMs, toMs, gauges }) => ({
      fromMs: fromMs + byMs,
      toMs: toMs + byMs,
      gauges,
    }))
  }

  /** Replaces the oldest step, and removes sites without requests in all. */
  #begin(step: Step): void {
    const place = this.#count++ % this.#size.stepsMax
    this.#steps.push(step)
    if (this.#steps.length > this.#size.stepsMax) this.#steps.shift()
    for (const ring of this.#all.values()) ring[place] = 0
    for (const [siteKey, rings] of this.#sites) {
      for (const ring of rings.values()) ring[place] = 0
      if ([...rings.values()].every(ring => ring.every(count => count === 0))) this.#sites.delete(siteKey)
    }
  }

  #site(siteKey: string): Map<string, Uint32Array> {
    const isOwn = siteKey !== '' && (this.#sites.size < STEP_SITES_MAX || this.#asked.has(siteKey))
    const name = this.#sites.has(siteKey) || isOwn ? siteKey : OTHER_SITES
    const rings = this.#sites.get(name) ?? new Map()
    this.#sites.set(name, rings)
    return rings
  }

  #addTo(rings: Map<string, Uint32Array>, increases: Increases): void {
    const place = (this.#count - 1) % this.#size.stepsMax
    for (const [name, count] of increases) {
      let ring = rings.get(name)
      if (ring === undefined) rings.set(name, (ring = new Uint32Array(this.#size.stepsMax)))
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

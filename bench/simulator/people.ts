/** People in the simulator: they send requests as the widget does, wait as Retry-After says, and give up after a time. */

import type { Address } from '../../src/addresses/address.ts'
import { DEVICE_CLASSES, type DeviceClass } from '../../test/harness/devices.ts'
import type { Measure } from './figures.ts'
import type { People } from './scenario.ts'
import type { SimulatedService, Solution } from './service.ts'
import type { Draw, Timeline } from './world.ts'

/** Those of the widget (src/widget/service.ts and flow.ts): tries of a request that meets a limit, challenges in one verification. */
const TRIES_MAX = 5
const ROUNDS_MAX = 4
const BACK_OFF_MS = 1000
const JITTER_MS = 500
const WAIT_MS_MAX = 900_000
/** People give up after so long without a token. */
const PATIENCE_MS = 30_000
/** One round trip for the challenge, one for the verification. */
const ROUND_TRIPS_MS = 2 * 80
/** The widget renews a token after this share of its life, while the page stays open. */
const RENEW_AT = 0.8
const TOKEN_MS = 300_000

export interface World {
  readonly timeline: Timeline
  readonly service: SimulatedService
  readonly draw: Draw
  readonly measure: Measure
  /** Multiplies the speed of all devices of people. */
  readonly speed: number
}

export class Visitor {
  readonly #world: World
  readonly #people: People
  readonly #device: DeviceClass
  readonly #address: Address
  readonly #hashesPerMs: number
  readonly #beganMs: number
  #rounds = 0
  #bits: number | undefined
  /** Until then, tokens are renewed. */
  readonly #closesPageAtMs: number
  #wasLimited = false
  #hasGivenUp = false
  /** With a token, only renewals follow, in the background: nobody waits for them. */
  #hasToken = false

  constructor(world: World, people: People, address: Address) {
    const { draw, timeline, speed } = world
    const { puzzle } = world.service
    const known = DEVICE_CLASSES.find(({ name }) => name === people.device)
    this.#world = world
    this.#people = people
    this.#device = known ?? draw.weighted(DEVICE_CLASSES)
    this.#address = address
    this.#hashesPerMs = draw.logNormal(this.#device.medianMhs[puzzle] * 1000, this.#device.sigma) * speed
    this.#beganMs = timeline.nowMs
    const { staysMinutes } = people
    const staysMs = staysMinutes === undefined ? 0 : draw.exponential(staysMinutes * 60_000)
    this.#closesPageAtMs = timeline.nowMs + staysMs
  }

  /** Arranges all requests of the visit, from the first challenge on. */
  begin(): void {
    this.#world.timeline.after(PATIENCE_MS, () => this.#giveUp())
    this.#ask(1)
  }

  #ask(tries: number): void {
    if (this.#hasGivenUp) return
    const { service, measure, timeline, draw } = this.#world
    const answer = service.challenge(this.#address)
    measure.served('challenge')
    if ('retryAfterMs' in answer) {
      this.#again(tries, answer.retryAfterMs, next => this.#ask(next))
      return
    }
    measure.issuedToPerson(timeline.nowMs, answer.bits)
    this.#bits = answer.bits
    const solution = { challenge: answer, isRight: true }
    const solvingMs = draw.exponential(1 / this.#hashesPerMs) * 2 ** answer.bits
    timeline.after(ROUND_TRIPS_MS + solvingMs, () => this.#send(solution, 1))
  }

  #send(solution: Solution, tries: number): void {
    if (this.#hasGivenUp) return
    const { service, measure, timeline } = this.#world
    const answer = service.verify(this.#address, solution)
    measure.served('verify')
    if (answer.status === 'limited')
      this.#again(tries, answer.retryAfterMs, next => this.#send(solution, next))
    else if (answer.status === 'passed') {
      if (!this.#hasToken) this.#end(timeline.nowMs - this.#beganMs, answer.score)
      this.#hasToken = true
      const renewsAtMs = timeline.nowMs + RENEW_AT * TOKEN_MS
      if (renewsAtMs < this.#closesPageAtMs)
        timeline.at(renewsAtMs, () => {
          this.#rounds = 0
          this.#ask(1)
        })
    } else if (answer.status === 'expired' && ++this.#rounds < ROUNDS_MAX) this.#ask(1)
    else this.#giveUp()
  }

  #again(tries: number, retryAfterMs: number, step: (tries: number) => void): void {
    const { timeline, draw } = this.#world
    this.#wasLimited = true
    if (tries === TRIES_MAX || retryAfterMs > WAIT_MS_MAX) return this.#giveUp()
    const seconds = Math.ceil(retryAfterMs / 1000)
    const waitMs = Math.max(seconds * 1000, BACK_OFF_MS * 2 ** (tries - 1)) + draw.share() * JITTER_MS
    timeline.after(waitMs, () => step(tries + 1))
  }

  #giveUp(): void {
    if (this.#hasGivenUp || this.#hasToken) return // with a token, only renewals end
    this.#hasGivenUp = true
    this.#end(undefined, 0)
  }

  #end(delayMs: number | undefined, score: number): void {
    this.#world.measure.visits.push({
      people: this.#people.name,
      device: this.#device.name,
      atMs: this.#beganMs,
      delayMs,
      wasLimited: this.#wasLimited,
      bits: this.#bits,
      score,
    })
  }
}

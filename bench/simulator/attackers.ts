/** Attackers: they rotate addresses, drop what is hard, and share one pool of processors. */

import { DEVICE_CLASSES } from '../../test/harness/devices.ts'
import type { World } from './people.ts'
import { type Attack, PRICES } from './scenario.ts'
import type { Challenge } from './service.ts'
import type { Addresses } from './world.ts'

/** A wrong counter is sent so long after its challenge, as if it had been found fast. */
const WRONG_AFTER_MS = 50
const [SECOND_MS, MINUTE_MS] = [1000, 60_000]

/** Arranges all requests of an attack. */
export class Attacker {
  readonly #world: World
  readonly #attack: Attack
  readonly #addresses: Addresses
  /** All processors together; one challenge after another, since its threads share each. */
  readonly #hashesPerMs: number
  /** The speed of each bot's browser; undefined if the attack has processors of its own. */
  readonly #botHashesPerMs: readonly number[] | undefined
  #next = 0
  /** When the processors have done what they have. */
  #freeAtMs = 0

  constructor(world: World, attack: Attack, addresses: Addresses) {
    const { threads = 0, gpus = 0, device } = attack
    const { puzzle } = world.service
    this.#world = world
    this.#attack = attack
    this.#addresses = addresses
    this.#hashesPerMs = (threads * PRICES.threadMhs[puzzle] + gpus * PRICES.gpuMhs[puzzle]) * 1000
    const browser = DEVICE_CLASSES.find(({ name }) => name === device)
    this.#botHashesPerMs =
      browser &&
      Array.from({ length: this.#addresses.count }, () =>
        world.draw.logNormal(browser.medianMhs[puzzle] * 1000, browser.sigma),
      )
  }

  /** To be called once for each request. */
  ask(): void {
    const { service, measure, timeline } = this.#world
    const count = measure.ofAttack(this.#attack)
    const bot = this.#next++ % this.#addresses.count
    count.asked++
    const answer = service.challenge(this.#addresses.get(bot))
    measure.served('challenge')
    if ('retryAfterMs' in answer) {
      count.refused++
      return
    }
    const { work, dropAbove = Number.POSITIVE_INFINITY, holdUntil = 0 } = this.#attack
    if (work === 'none') return
    const isRight = work === 'right'
    const isTooBusy = isRight && this.#botHashesPerMs === undefined && this.#freeAtMs >= answer.expiresAtMs
    if (isTooBusy || answer.bits > dropAbove) {
      count.dropped++
      return
    }
    const doneAtMs = isRight ? this.#solvedAtMs(answer, bot) : timeline.nowMs + WRONG_AFTER_MS
    const heldUntilMs = holdUntil === 'expiry' ? answer.expiresAtMs - SECOND_MS : holdUntil * MINUTE_MS
    const sentAtMs = Math.max(doneAtMs, heldUntilMs)
    if (sentAtMs >= answer.expiresAtMs) count.dropped++
    else timeline.at(sentAtMs, () => this.#send(answer, bot, isRight))
  }

  #solvedAtMs({ bits }: Challenge, bot: number): number {
    const { draw, timeline, measure } = this.#world
    const hashes = draw.exponential(2 ** bits)
    const own = this.#botHashesPerMs?.[bot]
    // A bot's browser costs the attacker nothing, and solves each challenge as if it had no other.
    if (own !== undefined) return timeline.nowMs + hashes / own
    measure.ofAttack(this.#attack).hashes += hashes
    this.#freeAtMs = Math.max(this.#freeAtMs, timeline.nowMs) + hashes / this.#hashesPerMs
    return this.#freeAtMs
  }

  #send(challenge: Challenge, bot: number, isRight: boolean): void {
    const { service, measure, timeline } = this.#world
    const count = measure.ofAttack(this.#attack)
    measure.served('verify')
    const answer = service.verify(this.#addresses.get(bot), { challenge, isRight })
    if (answer.status === 'passed') {
      count.accepted++
      measure.bin(timeline.nowMs).attackTokens++
    } else if (answer.status === 'limited') {
      count.refused++
    }
  }
}

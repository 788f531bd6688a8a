/**
 * One shard: a set of keys with one hash tag, so that one script call may touch any of them, on a single Redis as on a
 * Cluster. Operations that arrive in one event-loop turn go out as ONE call (FACTS: 13 us a request against 25). To
 * let them wait for the reply of the call before was tried too: turns of a busy server are long enough, it gained nothing.
 *
 *   enqueue ... enqueue -> (end of turn) -> call -> reply -> settle ... settle
 *                                             |
 *                                             +-> it did not run: held, and called again where the shard is found
 *                                             +-> deadline, error -> every operation unknown, shard down
 *
 * A shard is asked only at the place where its epoch was read: one connection to one server. When that breaks, or the
 * slot is served elsewhere, a probe with the real script comes first, wherever the shard is now. Every call finds out
 * whether marks of single use may have been lost on the way (lua/answers.lua). A shard that is down answers at once,
 * and is probed until that goes through. Calls that may have run are never sent again.
 */

import { withDeadline } from '../deadline.ts'
import { type Connection, type Place, patienceMs } from './connection.ts'
import { LastLook } from './last-look.ts'
import { PROBE } from './operations.ts'
import { orByText } from './run-script.ts'
import { TURN } from './scripts.ts'
import type { ShardOptions } from './shard-options.ts'
import { slotOf } from './shard-tags.ts'
import { epochOf, isReplyTo, type Settle, settleAll, Turn } from './turn.ts'

interface Flight {
  readonly turn: Turn
  readonly startedAtMs: number
  landed: boolean
  /** Where it went last. */
  place: Place | undefined
}

/** No call holds Redis for longer than this many operations (about half a millisecond). */
const OPERATIONS_MAX = 128
/** More unanswered calls than this are a queue that only delays refusals. */
const FLIGHTS_MAX = 256
const PROBE_WHEN_UP_MS = 1000
const PROBE_WHEN_LOST_MS = 50
/** While calls wait for the shard to be found. */
const PROBE_WHEN_HELD_MS = 10
const LOCATE_MS_MAX = 2000
/** A Cluster's refusals to run a call where it was sent, or at all for now; and our own, see lua/answers.lua. */
const DID_NOT_RUN = /^(?:MOVED|ASK|TRYAGAIN|CLUSTERDOWN|LATE) /

export class Shard {
  /** undefined until first reached. */
  epoch: number | undefined
  readonly keyPrefix: string
  readonly #epochKey: string
  readonly #lookKey: string
  readonly #probeKeys: readonly string[]
  readonly #slot: number
  readonly #connection: Connection
  readonly #options: ShardOptions
  #up = false
  /** Where the epoch was read. */
  #place: Place | undefined
  readonly #lastLook = new LastLook()
  #turn = new Turn()
  /** In the order of their start. */
  #flights: Flight[] = []
  /** Those of them that wait for a place. */
  #held: Flight[] = []
  #probeTimer: NodeJS.Timeout | undefined
  /** What was asked last, and when it last answered, or was first asked. */
  #asked: Place | undefined
  #heardAtMs = 0
  #isLocating = false
  #isDeadlineArmed = false
  #closed = false
  /** Why the shard is down, or calls are held. */
  #cause = 'no answer yet'

  constructor(connection: Connection, options: ShardOptions) {
    this.#connection = connection
    this.#options = options
    // Kept as the characters of its bytes, as everything in a turn is.
    this.keyPrefix = Buffer.from(options.keyPrefix).toString('latin1')
    this.#epochKey = `${this.keyPrefix}epoch`
    this.#lookKey = `${this.keyPrefix}look`
    this.#probeKeys = [`${this.keyPrefix}never`]
    this.#slot = slotOf(this.#epochKey)
  }

  get isUp(): boolean {
    return this.#up
  }

  get cause(): string {
    return this.#cause
  }

  start(): void {
    this.#probe()
  }

  connectionReady(): void {
    if (!this.#closed && this.#place === undefined) this.#probe()
  }

  /** A server that comes back may have lost its memory: nothing is asked before its epoch is known again. */
  connectionLost(place: Place): void {
    if (place === this.#asked) this.#asked = undefined
    if (place === this.#place) this.#goDown('the connection was lost')
  }

  stop(): void {
    this.#closed = true
    clearTimeout(this.#probeTimer)
    this.#goDown('closed')
  }

  /** @param operation from operations.ts; `keys` are what its Lua file asks for */
  enqueue(keys: readonly string[], operation: string, settle: Settle): void {
    if (!this.#up) {
      settle(undefined, 0)
      return
    }
    this.#add(keys, operation, settle)
  }

  #add(keys: readonly string[], operation: string, settle: Settle): void {
    const { settles } = this.#turn
    if (settles.length === 0) setImmediate(this.#flush)
    this.#turn.add(keys, operation, settle)
    if (settles.length >= OPERATIONS_MAX) this.#flush()
  }

  readonly #flush = (): void => {
    const turn = this.#turn
    if (turn.settles.length === 0) return
    this.#turn = new Turn()
    const flight: Flight = { turn, startedAtMs: performance.now(), landed: false, place: undefined }
    if (this.#flights.length >= FLIGHTS_MAX) {
      settleAll(turn, undefined)
      return
    }
    this.#flights.push(flight)
    this.#armDeadline(this.#options.deadlineMs)
    this.#launch(flight)
  }

  #launch(flight: Flight): void {
    const place = this.#place
    if (place === undefined || this.#connection.placeOf(this.#slot) !== place) {
      this.#hold(flight, 'it is being looked for')
      return
    }
    flight.place = place
    this.#call(flight.turn, place).then(
      reply => this.#landed(flight, reply),
      error => this.#failed(flight, error),
    )
  }

  /** Nothing of it has run. It goes out again once the shard is found, if that is before its deadline. */
  #hold(flight: Flight, cause: string): void {
    this.#held.push(flight)
    this.#cause = cause
    if (this.#place === undefined) return
    this.#place = undefined
    this.#probe()
  }

  #call(turn: Turn, place: Place): Promise<unknown> {
    const { clock, newEpoch } = this.#options
    const shard = {
      epochKey: this.#epochKey,
      lookKey: this.#lookKey,
      clock: clock === undefined ? '' : String(clock()),
      newEpoch: String(newEpoch()),
      lookedAt: place === this.#place ? this.#lastLook.at : '',
      expected: this.#lastLook.expectedNow(),
    }
    return orByText(async how => {
      const command = turn.call(TURN, how, shard)
      try {
        return await this.#connection.sendTo(place, command)
      } catch (error) {
        // An error that the server itself sent is a sign of life too.
        if (error instanceof Error && error.name === 'ReplyError') this.#heardAtMs = performance.now()
        throw error
      }
    })
  }

  #landed(flight: Flight, reply: unknown): void {
    this.#heardAtMs = performance.now()
    if (flight.landed) return
    if (!isReplyTo(flight.turn, reply)) {
      this.#failed(flight, new Error('a reply of unexpected length'))
      return
    }
    this.#remove(flight)
    // A late reply of the server that was left tells an epoch that is no more.
    if (flight.place === this.#place) this.#learn(reply, flight.startedAtMs)
    this.#land(flight, reply)
  }

  #failed(flight: Flight, error: unknown): void {
    if (flight.landed) return
    const message = error instanceof Error ? error.message : String(error)
    if (DID_NOT_RUN.test(message)) {
      this.#hold(flight, message)
      return
    }
    this.#remove(flight)
    this.#land(flight, undefined)
    this.#goDown(message)
  }

  #land(flight: Flight, reply: Buffer | undefined): void {
    if (flight.landed) return
    flight.landed = true
    const { turn } = flight
    this.#options.onCall?.(turn.settles.length, (performance.now() - turn.startedAtMs) / 1000)
    settleAll(turn, reply)
  }

  #remove(flight: Flight): void {
    const index = this.#flights.indexOf(flight)
    if (index >= 0) this.#flights.splice(index, 1)
  }

  /** One timer for all calls under way: the oldest is due first. */
  #armDeadline(afterMs: number): void {
    if (this.#isDeadlineArmed) return
    this.#isDeadlineArmed = true
    // A stalled event loop runs its timers before it reads sockets: read first, then judge.
    setTimeout(() => setImmediate(this.#checkDeadline), afterMs)
  }

  readonly #checkDeadline = (): void => {
    this.#isDeadlineArmed = false
    const oldest = this.#flights[0]
    if (oldest === undefined) return
    const { deadlineMs } = this.#options
    const restMs = oldest.startedAtMs + deadlineMs - performance.now()
    if (restMs > 0) this.#armDeadline(restMs)
    else this.#goDown(this.#held.includes(oldest) ? this.#cause : `no answer within ${deadlineMs} ms`)
  }

  /** Every operation under way is unknown from here on; late replies count only as a sign of life. */
  #goDown(cause: string): void {
    const flights = this.#flights
    this.#flights = []
    this.#held = []
    const wasUp = this.#up
    this.#up = false
    this.#place = undefined
    for (const flight of flights) this.#land(flight, undefined)
    const waiting = this.#turn
    this.#turn = new Turn()
    settleAll(waiting, undefined)
    if (wasUp && !this.#closed) {
      this.#cause = cause
      // While it was up and quiet it had no reason to say anything: its silence begins here.
      this.#heardAtMs = performance.now()
      this.#options.onChange(this, false, cause)
      this.#scheduleProbe(0)
    }
  }

  #scheduleProbe(afterMs: number): void {
    clearTimeout(this.#probeTimer)
    if (!this.#closed) this.#probeTimer = setTimeout(this.#probe, afterMs).unref()
  }

  /** Runs the real script with an operation that writes; its answer decides whether the shard is up. */
  readonly #probe = (): void => {
    const place = this.#connection.placeOf(this.#slot)
    if (this.#up && place !== undefined && place === this.#place) {
      this.#scheduleProbe(PROBE_WHEN_UP_MS)
      this.#add(this.#probeKeys, PROBE, () => {})
      return
    }
    this.#scheduleProbe(this.#held.length > 0 ? PROBE_WHEN_HELD_MS : PROBE_WHEN_LOST_MS)
    if (place === undefined) {
      this.#connection.unstick(this.#slot)
      this.#locate()
    } else {
      // As with the deadline: what has come is read before it is missed.
      if (place === this.#asked) setImmediate(this.#checkSilence, place)
      this.#probeAt(place)
    }
  }

  /** The other side may be gone without a word. */
  readonly #checkSilence = (place: Place): void => {
    const silentMs = performance.now() - this.#heardAtMs
    if (this.#place !== undefined || place !== this.#asked || silentMs < patienceMs(this.#options.deadlineMs))
      return
    this.#heardAtMs = performance.now()
    this.#connection.drop(place)
  }

  #probeAt(place: Place): void {
    if (place !== this.#asked) {
      this.#asked = place
      this.#heardAtMs = performance.now()
    }
    const turn = new Turn()
    turn.add(this.#probeKeys, PROBE, () => {})
    const { deadlineMs } = this.#options
    this.#call(turn, place).then(
      reply => {
        this.#heardAtMs = performance.now()
        // Where a probe comes too late, calls would: they would run, and be refused all the same.
        const isLate = this.#heardAtMs - turn.startedAtMs > deadlineMs
        if (isLate) this.#cause = `no answer within ${deadlineMs} ms`
        else if (isReplyTo(turn, reply)) this.#found(place, reply, turn.startedAtMs)
      },
      error => {
        const message = error instanceof Error ? error.message : String(error)
        if (!this.#up) this.#cause = message
        if (message.startsWith('MOVED ')) this.#locate()
        const isPrompt = performance.now() - turn.startedAtMs <= deadlineMs
        if (message.startsWith('LATE ') && isPrompt) this.#lastLook.forget()
      },
    )
  }

  #locate(): void {
    if (this.#isLocating || !this.#connection.isCluster) return
    this.#isLocating = true
    const done = () => {
      this.#isLocating = false
    }
    withDeadline(this.#connection.locate(this.#epochKey), LOCATE_MS_MAX, 'looking for a slot').then(
      done,
      done,
    )
  }

  #learn(reply: Buffer, askedAtMs: number): void {
    const epoch = epochOf(reply)
    if (this.epoch !== undefined && this.epoch !== epoch) this.#options.onForgotten()
    this.epoch = epoch
    this.#lastLook.learn(reply, askedAtMs)
  }

  #found(place: Place, reply: Buffer, askedAtMs: number): void {
    if (this.#closed || this.#place !== undefined || this.#connection.placeOf(this.#slot) !== place) return
    this.#place = place
    this.#learn(reply, askedAtMs)
    this.#scheduleProbe(PROBE_WHEN_UP_MS)
    const wasUp = this.#up
    this.#up = true
    if (!wasUp) this.#options.onChange(this, true, 'the scripts run')
    const held = this.#held
    this.#held = []
    for (const flight of held) if (!flight.landed) this.#launch(flight)
  }
}

/**
 * One shard: a set of keys with one hash tag, so that one script call may touch any of them, on a single Redis as on a
 * Cluster. Operations that arrive in one event-loop turn go out as ONE call (FACTS: 13 us a request against 25). To
 * let them wait for the reply of the call before was tried too: turns of a busy server are long enough, it gained nothing.
 *
 *   enqueue ... enqueue -> (end of turn) -> call -> reply -> settle ... settle
 *                                             |
 *                                             +-> deadline, error -> every operation unknown, shard down
 *
 * A shard that is down answers at once, and is probed with the real script until that goes through. Calls are never
 * sent again: a script whose answer was lost may have run. (NOSCRIPT is the exception: nothing ran.)
 */

import { Command } from 'ioredis'
import type { OnStoreCall } from '../store.ts'
import type { Connection } from './connection.ts'
import { PROBE } from './operations.ts'
import { type Script, TURN } from './scripts.ts'
import { epochOf, isReplyTo, type Settle, settleAll, Turn } from './turn.ts'

interface Flight {
  readonly turn: Turn
  readonly sentAtMs: number
  landed: boolean
}

/** No call holds Redis for longer than this many operations (about half a millisecond). */
const OPERATIONS_MAX = 128
/** More unanswered calls than this are a queue that only delays refusals. */
const FLIGHTS_MAX = 256
const PROBE_WHEN_UP_MS = 1000
const PROBE_WHEN_DOWN_MS = 50
/** A connection that is silent for this long is given up, in case the other side is gone without a word. */
const SILENCE_MS_MAX = 5000

export interface ShardOptions {
  /** Starts every key: `<prefix>:{<tag>}:`. */
  readonly keyPrefix: string
  readonly deadlineMs: number
  /** For tests; the server's own clock if undefined. */
  readonly clock: (() => number) | undefined
  /** A random unsigned 32-bit number, for a shard that has no epoch. */
  readonly newEpoch: () => number
  readonly onChange: (shard: Shard, up: boolean, cause: string) => void
  readonly onCall: OnStoreCall | undefined
}

export class Shard {
  /** undefined until first reached. */
  epoch: number | undefined
  readonly keyPrefix: string
  readonly #epochKey: string
  readonly #processKey: string
  readonly #connection: Connection
  readonly #options: ShardOptions
  #up = false
  #turn = new Turn()
  #flights: Flight[] = []
  #probeTimer: NodeJS.Timeout | undefined
  #isDeadlineArmed = false
  #closed = false

  constructor(connection: Connection, options: ShardOptions) {
    this.#connection = connection
    this.#options = options
    // Kept as the characters of its bytes, as everything in a turn is.
    this.keyPrefix = Buffer.from(options.keyPrefix).toString('latin1')
    this.#epochKey = `${this.keyPrefix}epoch`
    this.#processKey = `${this.keyPrefix}process`
  }

  get isUp(): boolean {
    return this.#up
  }

  start(): void {
    this.#probe()
  }

  /** A server that comes back may have lost its memory: nothing is asked before its epoch is known again. */
  connectionChanged(isReady: boolean): void {
    if (!isReady) this.#goDown('the connection was lost')
    else if (!this.#closed) this.#probe()
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
    const flight: Flight = { turn, sentAtMs: performance.now(), landed: false }
    if (this.#flights.length >= FLIGHTS_MAX) {
      settleAll(turn, undefined)
      return
    }
    this.#flights.push(flight)
    this.#armDeadline(this.#options.deadlineMs)
    this.#call(turn).then(
      reply => this.#landed(flight, reply),
      error => this.#failed(flight, error),
    )
  }

  #call(turn: Turn): Promise<unknown> {
    const { clock, newEpoch } = this.#options
    const time = clock === undefined ? '' : String(clock())
    const call = (how: 'evalsha' | 'eval') => turn.call(TURN, how, this.#epochKey, time, String(newEpoch()))
    return orByText(this.#connection, call)
  }

  #landed(flight: Flight, reply: unknown): void {
    if (!isReplyTo(flight.turn, reply)) {
      this.#failed(flight, new Error('a reply of unexpected length'))
      return
    }
    this.#remove(flight)
    this.epoch = epochOf(reply)
    this.#land(flight, reply)
  }

  #failed(flight: Flight, error: unknown): void {
    this.#remove(flight)
    this.#land(flight, undefined)
    this.#goDown(error instanceof Error ? error.message : String(error))
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

  /** One timer for all calls under way: they were sent in order, so the oldest is due first. */
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
    const restMs = oldest.sentAtMs + this.#options.deadlineMs - performance.now()
    if (restMs > 0) this.#armDeadline(restMs)
    else this.#goDown(`no answer within ${this.#options.deadlineMs} ms`)
  }

  /** Every operation under way is unknown from here on; late replies count only as a sign of life. */
  #goDown(cause: string): void {
    const flights = this.#flights
    this.#flights = []
    const wasUp = this.#up
    this.#up = false
    for (const flight of flights) this.#land(flight, undefined)
    const waiting = this.#turn
    this.#turn = new Turn()
    settleAll(waiting, undefined)
    if (wasUp && !this.#closed) {
      this.#options.onChange(this, false, cause)
      this.#scheduleProbe(PROBE_WHEN_DOWN_MS)
    }
  }

  #scheduleProbe(afterMs: number): void {
    clearTimeout(this.#probeTimer)
    if (!this.#closed) this.#probeTimer = setTimeout(this.#probe, afterMs).unref()
  }

  /** Runs the real script with an operation that writes; its answer decides whether the shard is up. */
  readonly #probe = (): void => {
    this.#scheduleProbe(this.#up ? PROBE_WHEN_UP_MS : PROBE_WHEN_DOWN_MS)
    if (this.#up) {
      this.#add([this.#processKey], PROBE, () => {})
      return
    }
    if (performance.now() - this.#connection.lastReplyMs > SILENCE_MS_MAX) {
      this.#connection.lastReplyMs = performance.now()
      this.#connection.reconnect()
    }
    if (!this.#connection.isReady()) return
    const turn = new Turn()
    turn.add([this.#processKey], PROBE, () => {})
    this.#call(turn).then(
      reply => {
        if (isReplyTo(turn, reply)) this.#revived(epochOf(reply))
      },
      () => {},
    )
  }

  #revived(epoch: number): void {
    if (this.#closed || this.#up) return
    this.epoch = epoch
    this.#up = true
    this.#scheduleProbe(PROBE_WHEN_UP_MS)
    this.#options.onChange(this, true, 'the scripts run')
  }
}

export function runScript(connection: Connection, script: Script, args: string[]): Promise<unknown> {
  return orByText(
    connection,
    how => new Command(how, [how === 'evalsha' ? script.sha : script.text, ...args]),
  )
}

/** EVALSHA, and EVAL where the server does not know the script: then nothing ran, so that is no resend. */
async function orByText(
  connection: Connection,
  call: (how: 'evalsha' | 'eval') => Command,
): Promise<unknown> {
  try {
    return await send(connection, call('evalsha'))
  } catch (error) {
    if (!(error instanceof Error) || !error.message.startsWith('NOSCRIPT')) throw error
    return await send(connection, call('eval'))
  }
}

async function send(connection: Connection, command: Command): Promise<unknown> {
  try {
    const reply = await connection.send(command)
    connection.lastReplyMs = performance.now()
    return reply
  } catch (error) {
    // An error that the server itself sent is a sign of life too.
    if (error instanceof Error && error.name === 'ReplyError') connection.lastReplyMs = performance.now()
    throw error
  }
}

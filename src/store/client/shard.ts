/**
 * One shard: the keys with one hash tag, which a script call may use together. All operations of a tick of the event loop go out as
 * ONE call (13 us a request instead of 25). While a call is pending, later operations gather for the next one, because a call by
 * itself costs Redis as much as four challenges.
 *
 *   up         (isUp, #server) calls go over the connection on which the epoch (lua/epoch.lua) was read
 *   searching  (isUp, no #server) the slot has another server by now: calls are requeued until a probe finds it
 *   down       (not isUp) a call failed, or its answer did not come in time: operations are refused at once, until a probe with the
 *              real script succeeds
 *
 * One timer probes in every state. An answered probe of a searching or down shard (#found) makes it up, and sends the requeued
 * calls. A server that stays silent meanwhile (#probedServer) gets a new connection.
 */

import { evalScript } from '../redis/scripts.ts'
import type { OnStoreCall } from '../store.ts'
import { Batch, type EpochKeys, epochOf, isReplyTo, type Operation, type Settle, settleAll } from './batch.ts'
import { CallHead } from './call-head.ts'
import { type Connection, type Server, silenceMsMax, slotOf, withDeadline } from './connection.ts'

interface ShardOptions {
  /** `<prefix>:{<tag>}:` */
  readonly keyPrefix: string
  readonly deadlineMs: number
  /** Returns a test's time, or an empty text for the server's own clock. */
  readonly testClock: () => string
  readonly onChange: () => void
  readonly onForgotten: () => void
  readonly onCall: OnStoreCall | undefined
}

/**
 *   sent      it waits for its answer
 *   requeued  it has not run, and is sent when the server is found; a new call begins so
 *   settled   each operation has its answer; or the call failed, or its answer did not come in time. Then it may have run, so it is
 *             never sent again
 */
interface Call {
  readonly batch: Batch
  state: 'sent' | 'requeued' | 'settled'
  server: Server | undefined
}

/** A call of this size occupies Redis for half a millisecond. */
const OPERATIONS_MAX = 128
/** With so many pending calls, operations are refused even though the shard is up, because more would only delay refusals. */
const PENDING_MAX = 256
/** Within this time a worker learns how many nonces and tokens others used, by which it notices an older copy (lua/epoch.lua). */
const PROBE_WHEN_UP_MS = 250
/** One of four probes writes, so a read-only server is found within a second. Each write makes an append-only file longer. */
const PROBES_PER_WRITE = 4
const PROBE_WHEN_DOWN_MS = 50
/** Requeued calls wait for this probe. */
const PROBE_WHEN_SEARCHING_MS = 10
/** Asking a Cluster where the slot is may take this long, then it is asked again. */
const LOCATE_MS_MAX = 2000
/** No more former epochs are kept, because a nonce that seems forged is checked under each, which costs a hash. */
const FORMER_EPOCHS_MAX = 3
const OTHER_TIME = 'OTHERTIME '
/** A Cluster's answers while a slot's keys lie with two nodes. Probes get them too, since they name a key that is not there. */
const SLOT_MOVES = /^(?:ASK|TRYAGAIN) /
/** Redirections and temporary refusals of a Cluster, and OTHERTIME of lua/epoch.lua. */
const DID_NOT_RUN = /^(?:MOVED|ASK|TRYAGAIN|CLUSTERDOWN|OTHERTIME) /

export class Shard {
  /** The last one that a reply had; undefined before the first reply. */
  epoch: number | undefined
  /** The last FORMER_EPOCHS_MAX before it that this worker met since its start, oldest first. */
  formerEpochs: readonly number[] = []
  isUp = false
  #downSinceMs = performance.now()
  /** Why the shard is searching or down. */
  cause = 'no answer yet'
  readonly keyPrefix: string
  readonly #epochKeys: EpochKeys
  /** The operations of lua/probe-1.lua, which all scripts have, so they name none: P, and PW, which also writes. */
  readonly #probeOperation: Operation
  readonly #writingProbe: Operation
  /** Probes sent while up, of which some write. */
  #probes = 0
  readonly slot: number
  readonly #connection: Connection
  readonly #options: ShardOptions
  /** The connection on which `epoch` was read; undefined while searching or down. */
  #server: Server | undefined
  /** What each call tells first: the server's last reply, by which the server notices that records may be lost. */
  readonly #head: CallHead
  /** Operations that gather for the next call. */
  #batch = new Batch()
  /**
   * Calls that are sent or requeued, oldest first. A Set would leak: V8 links a changed Set's table to the next, and an old table
   * keeps all later ones alive.
   */
  readonly #pending: Call[] = []
  #probeTimer: NodeJS.Timeout | undefined
  /** The server that is probed while searching or down. */
  #probedServer: Server | undefined
  /** When a server last answered, or `#probedServer` was first probed, if that was later; by `performance.now`. */
  #silentSinceMs = 0
  #isLocating = false
  #isDeadlineArmed = false
  #closed = false

  constructor(connection: Connection, options: ShardOptions) {
    this.#connection = connection
    this.#options = options
    this.#head = new CallHead(connection.isCluster)
    // One character stands for a byte, as in all texts of a batch.
    this.keyPrefix = Buffer.from(options.keyPrefix).toString('latin1')
    this.#epochKeys = [`${this.keyPrefix}epoch`, `${this.keyPrefix}look`, `${this.keyPrefix}count`]
    const keys = [`${this.keyPrefix}never`]
    this.#probeOperation = { script: undefined, keys, text: 'P', meters: [], proofs: 0 }
    this.#writingProbe = { ...this.#probeOperation, text: 'PW' }
    this.slot = slotOf(this.#epochKeys[0])
  }

  get awayMs(): number {
    return this.isUp ? 0 : performance.now() - this.#downSinceMs
  }

  connectionReady(): void {
    if (!this.#closed && this.#server === undefined) this.probe()
  }

  connectionLost(server: Server): void {
    if (server === this.#probedServer) this.#probedServer = undefined
    if (server === this.#server) this.#goDown('the connection was lost')
  }

  stop(): void {
    this.#closed = true
    clearTimeout(this.#probeTimer)
    this.#goDown('closed')
  }

  enqueue(operation: Operation, settle: Settle): void {
    if (this.isUp) this.#add(operation, settle)
    else settle(undefined, 0, [])
  }

  #add(operation: Operation, settle: Settle): void {
    const { settles } = this.#batch
    if (settles.length === 0) setImmediate(this.#flush)
    this.#batch.add(operation, settle)
    if (settles.length >= OPERATIONS_MAX) this.#flush()
  }

  /** Sends what has gathered, unless a call is pending: then it goes on gathering until it is full, or the call is answered. */
  readonly #flush = (): void => {
    const batch = this.#batch
    const count = batch.settles.length
    if (count === 0 || (this.#pending.length > 0 && count < OPERATIONS_MAX)) return
    this.#batch = new Batch()
    if (this.#pending.length >= PENDING_MAX) return settleAll(batch, undefined)
    const call: Call = { batch, state: 'requeued', server: undefined }
    this.#pending.push(call)
    this.#armDeadline()
    this.#send(call)
  }

  #send(call: Call): void {
    const server = this.#server
    if (server === undefined || this.#connection.serverOf(this.slot) !== server)
      return this.#requeue(call, 'the server is being looked for')
    call.state = 'sent'
    call.server = server
    this.#run(call.batch, server).then(
      reply => this.#answered(call, reply),
      error => this.#failed(call, error.message),
    )
  }

  #requeue(call: Call, cause: string): void {
    call.state = 'requeued'
    this.cause = cause
    if (this.#server === undefined) return // a probe is scheduled already
    this.#server = undefined
    this.probe()
  }

  #run(batch: Batch, server: Server): Promise<unknown> {
    const { testClock } = this.#options
    const isSameConnection = server === this.#server // else the server must check itself anew
    const values = [testClock(), this.#head.next(isSameConnection, batch.meterCount)]
    return evalScript(batch.script, async (name, code) => {
      const command = batch.command(name, code, this.#epochKeys, values)
      try {
        const reply = await server.sendCommand(command)
        this.#silentSinceMs = performance.now()
        return reply
      } catch (error) {
        // An error reply is a sign of life too.
        if (error instanceof Error && error.name === 'ReplyError') {
          this.#silentSinceMs = performance.now()
          if (SLOT_MOVES.test(error.message)) this.#head.slotMoves()
        }
        throw error
      }
    })
  }

  #answered(call: Call, reply: unknown): void {
    if (call.state !== 'sent') return
    if (!isReplyTo(call.batch, reply)) return this.#failed(call, 'a reply of unexpected length')
    // A late reply of another connection may have an old epoch. Its answers are right: the script compared epochs operation by operation.
    if (call.server === this.#server) this.#learn(reply, call.batch.startedAtMs)
    this.#settle(call, reply)
    this.#flush()
  }

  #failed(call: Call, message: string): void {
    if (call.state !== 'sent') return
    if (DID_NOT_RUN.test(message)) return this.#requeue(call, message)
    // Other errors (a closed connection, a full memory, a script that is refused) would meet the other calls, too.
    this.#goDown(message)
  }

  #settle(call: Call, reply: Buffer | undefined): void {
    call.state = 'settled'
    this.#pending.splice(this.#pending.indexOf(call), 1)
    const { batch } = call
    this.#options.onCall?.(batch.settles.length, (performance.now() - batch.startedAtMs) / 1000)
    settleAll(batch, reply)
  }

  /** The deadline counts from the first operation of the oldest pending call. */
  #armDeadline(): void {
    const [oldest] = this.#pending
    if (this.#isDeadlineArmed || oldest === undefined) return
    this.#isDeadlineArmed = true
    const restMs = oldest.batch.startedAtMs + this.#options.deadlineMs - performance.now()
    // After a stall of this process, timers run before sockets are read: an answer that has come must not count as late.
    setTimeout(() => setImmediate(this.#checkDeadline), restMs)
  }

  readonly #checkDeadline = (): void => {
    this.#isDeadlineArmed = false
    const [oldest] = this.#pending
    if (oldest === undefined) return
    const { deadlineMs } = this.#options
    if (performance.now() < oldest.batch.startedAtMs + deadlineMs) this.#armDeadline()
    else this.#goDown(oldest.state === 'requeued' ? this.cause : `no answer within ${deadlineMs} ms`)
  }

  /** Settles everything as unknown. A reply that comes later only shows that the server lives. */
  #goDown(cause: string): void {
    const wasUp = this.isUp
    this.isUp = false
    if (wasUp) this.#downSinceMs = performance.now() // first, because who is settled asks for how long
    this.#server = undefined
    for (const call of [...this.#pending]) this.#settle(call, undefined)
    const waiting = this.#batch
    this.#batch = new Batch()
    settleAll(waiting, undefined)
    if (wasUp && !this.#closed) {
      this.cause = cause
      this.#probedServer = undefined // its silence counts from the next probe, since there may have been nothing to answer before
      this.#options.onChange()
      this.#scheduleProbe(0)
    }
  }

  #scheduleProbe(afterMs: number): void {
    clearTimeout(this.#probeTimer)
    if (!this.#closed) this.#probeTimer = setTimeout(this.probe, afterMs).unref()
  }

  /** A probe is an operation like others while up, otherwise a call to the server that the slot has by now. */
  readonly probe = (): void => {
    const server = this.#connection.serverOf(this.slot)
    if (server !== undefined && server === this.#server) {
      this.#scheduleProbe(PROBE_WHEN_UP_MS)
      const writes = this.#probes++ % PROBES_PER_WRITE === 0
      this.#add(writes ? this.#writingProbe : this.#probeOperation, () => {})
      return
    }
    if (server !== undefined) this.#server = undefined // the slot has moved; if no server has it, `connectionLost` follows
    const isSearching = this.isUp && this.#server === undefined
    this.#scheduleProbe(isSearching ? PROBE_WHEN_SEARCHING_MS : PROBE_WHEN_DOWN_MS)
    if (server === undefined) {
      this.#connection.endIfStuck(this.slot)
      this.#locate()
    } else {
      // An answer that has come must be read first, as with the deadline.
      if (server === this.#probedServer) setImmediate(this.#checkSilence, server)
      this.#probeAt(server)
    }
  }

  /** Replaces the connection of a server that has vanished without closing it. */
  readonly #checkSilence = (server: Server): void => {
    const isSilent = performance.now() - this.#silentSinceMs >= silenceMsMax(this.#options.deadlineMs)
    if (!isSilent || this.#server !== undefined || server !== this.#probedServer) return
    this.#probedServer = undefined
    this.#connection.drop(server)
  }

  #probeAt(server: Server): void {
    if (server !== this.#probedServer) {
      this.#probedServer = server
      this.#silentSinceMs = performance.now()
    }
    const batch = new Batch()
    batch.add(this.#writingProbe, () => {})
    const { deadlineMs } = this.#options
    this.#run(batch, server).then(
      reply => {
        // A server this slow would run calls whose requests were refused meanwhile, so the shard stays down.
        const isLate = performance.now() - batch.startedAtMs > deadlineMs
        if (isLate) this.cause = `no answer within ${deadlineMs} ms`
        else if (isReplyTo(batch, reply)) this.#found(server, reply, batch.startedAtMs)
        else this.cause = 'a reply of unexpected length'
      },
      error => {
        const { message } = error
        // Any other error follows from a connection that was given up, and says less than the cause before it.
        if (!this.isUp && error.name === 'ReplyError') this.cause = message
        // A primary that has lost its peers answers CLUSTERDOWN, and tells nobody that its replica took over.
        if (/^(?:MOVED|CLUSTERDOWN) /.test(message)) this.#locate()
        const isPrompt = performance.now() - batch.startedAtMs <= deadlineMs
        // OTHERTIME in time means that the server's clock was set (rule 5b of lua/epoch.lua).
        if (message.startsWith(OTHER_TIME) && isPrompt) this.#head.forgetTime()
      },
    )
  }

  #locate(): void {
    if (this.#isLocating || !this.#connection.isCluster) return
    this.#isLocating = true
    const done = () => {
      this.#isLocating = false
    }
    const located = this.#connection.locate(this.#epochKeys[0])
    withDeadline(located, LOCATE_MS_MAX, 'looking for a slot').then(done, done)
  }

  #learn(reply: Buffer, askedAtMs: number): void {
    const epoch = epochOf(reply)
    if (this.epoch !== undefined && this.epoch !== epoch) {
      this.formerEpochs = [...this.formerEpochs, this.epoch].slice(-FORMER_EPOCHS_MAX)
      this.#options.onForgotten()
    }
    this.epoch = epoch
    this.#head.learn(reply, askedAtMs)
  }

  #found(server: Server, reply: Buffer, askedAtMs: number): void {
    if (this.#closed || this.#server !== undefined || this.#connection.serverOf(this.slot) !== server) return
    this.#server = server
    this.#learn(reply, askedAtMs)
    this.#scheduleProbe(PROBE_WHEN_UP_MS)
    const wasUp = this.isUp
    this.isUp = true
    if (!wasUp) this.#options.onChange()
    for (const call of this.#pending) if (call.state === 'requeued') this.#send(call)
  }
}

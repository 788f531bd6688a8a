/**
 * The store process' side of the socket. Only the owner of the data directory (own-socket.ts) opens its files, so what a command
 * answers is what the service knows. The server speaks Redis' protocol, with few commands:
 *
 *   EVALSHA, EVAL   a worker's batch: see engine.ts
 *   SITES           name and arguments, in JSON, of an operation on sites: see socket-sites.ts
 *   LEAVE           a new service asks the owner to end. It does so if its primary has gone; otherwise it says who it is
 *   INFO, TIME, SELECT, PING   what ioredis and `powgate check` ask
 */

import { chmodSync, existsSync, rmSync, statSync } from 'node:fs'
import type { Server, Socket } from 'node:net'
import { join, resolve } from 'node:path'
import { openFilesMax, STORE_FILES } from '../../config/open-files.ts'
import { systemErrorText } from '../../words/system-error.ts'
import { LAYOUT } from '../wire.ts'
import { bulkReply, type Call, CallReader, errorReply, OK_REPLY } from './calls.ts'
import { giveToUser, hasServedFrom } from './data-dir.ts'
import { Engine } from './engine.ts'
import { type OwnerOptions, ownSocket } from './own-socket.ts'
import { EmbeddedSites, SITES_JSONL } from './sites-file.ts'
import { loadState, removeSavedState, saveState } from './snapshot.ts'
import { answerOf } from './socket-sites.ts'
import { type Clocks, State, SYSTEM_CLOCKS, sweep } from './state.ts'

const CHECK_MS = 1000

export interface ServerOptions extends OwnerOptions {
  readonly stateBytesMax: number
  /** The name that others who want the directory are told. */
  readonly who: string
  /** A command reads the saved state only if it must, because that may be large. */
  readonly isCommand?: true
  readonly isReadOnly?: boolean // for `powgate check`
  /** Called when a new service asks this owner to end. @returns true if this process ends now */
  readonly onLeaveRequest?: () => boolean
  readonly onIdle?: () => void // when the last client has left
  readonly tell?: (level: 'info' | 'warn' | 'error', text: string) => void
  readonly clocks?: Clocks
}

export class StoreServer {
  readonly sites: EmbeddedSites
  /**
   * What batches use: in a service the saved state, in a command an empty one. Workers of a killed service may send batches to a command,
   * which keeps nothing of them, so a token must not be redeemed there: the empty state has another epoch, by which it is refused.
   */
  readonly state: State
  /** undefined until the saved state is needed. */
  #saved: State | undefined
  readonly #options: ServerOptions
  readonly #server: Server
  readonly #path: string
  readonly #engine: Engine
  readonly #clients = new Set<Socket>()
  /** The inode of the own socket. If its path leads to another, or to none, the directory was replaced. */
  readonly #inode: number
  #sweepTimer: NodeJS.Timeout | undefined
  readonly #checkTimer: NodeJS.Timeout
  #wasHalfFull = false
  /** Why batches and operations on sites are refused, once the directory or sites.jsonl was replaced. */
  #displaced: string | undefined
  /** True while the directory cannot be looked into. */
  #isUnseen = false

  private constructor(options: ServerOptions, server: Server, path: string) {
    const { dataDir, stateBytesMax, isCommand, isReadOnly, clocks = SYSTEM_CLOCKS, tell } = options
    this.#options = options
    this.#server = server
    this.#path = path
    chmodSync(path, 0o600)
    giveToUser(path)
    this.#inode = statSync(path).ino
    // The sites are read first, so a start that they end leaves the state as it is.
    this.sites = new EmbeddedSites(dataDir, () => this.#savedState(), isReadOnly)
    this.state = isCommand ? new State(stateBytesMax) : this.#savedState()
    this.#engine = new Engine(this.state, clocks)
    const { droppedLine } = this.sites
    if (droppedLine !== undefined) tell?.('warn', `of the sites' file, ${droppedLine}`)
    const sweepOn = () => {
      this.#sweepTimer = setTimeout(sweepOn, sweep(this.state, clocks)).unref()
    }
    sweepOn()
    this.#checkTimer = setInterval(() => this.#check(), CHECK_MS).unref()
    server.on('connection', socket => this.#serve(socket))
    // A process that may open no more files cannot accept a connection. An error event without a listener would end it.
    server.on('error', () => {})
    server.maxConnections = openFilesMax('self') - STORE_FILES
    server.once('drop', () =>
      tell?.('error', 'the store lacks files for all connections (ulimit -n, LimitNOFILE)'),
    )
  }

  /** Waits until the present owner of the directory has ended. @throws OperatorError */
  static async open(options: ServerOptions): Promise<StoreServer> {
    const { server, path } = await ownSocket(options)
    try {
      return new StoreServer(options, server, path)
    } catch (error) {
      server.close()
      throw error
    }
  }

  get isIdle(): boolean {
    return this.#clients.size === 0
  }

  async close({ saves }: { readonly saves: boolean }): Promise<void> {
    clearTimeout(this.#sweepTimer)
    clearInterval(this.#checkTimer)
    // What a client redeems from now on would not be in the saved state.
    this.#server.removeAllListeners('connection').on('connection', client => client.destroy())
    for (const client of this.#clients) client.destroy()
    this.#check() // in a directory that is no longer its own, nothing is saved or removed
    await this.sites.closeFile()
    if (this.#displaced === undefined) {
      if (saves) this.#save()
      try {
        rmSync(this.#path)
      } catch {
        // The file system may be read-only now. The next start takes the name from a socket that nobody answers on.
      }
    } else if (saves) {
      const why = 'the data directory, its socket or sites.jsonl was replaced or removed'
      this.#options.tell?.('warn', `the state is not saved (${why}): what was issued before is refused`)
    }
    await new Promise<void>(done => this.#server.close(() => done()))
  }

  #savedState(): State {
    if (this.#saved !== undefined) return this.#saved
    const { dataDir, stateBytesMax, isCommand, tell } = this.#options
    this.#saved = new State(stateBytesMax)
    const unread = loadState(dataDir, this.#saved, { isService: !isCommand })
    if (unread !== undefined) tell?.('info', unread)
    return this.#saved
  }

  /** Saves `#saved`. In a command that is not `state`: what batches did there is not kept. */
  #save(): void {
    const { dataDir, tell } = this.#options
    try {
      saveState(dataDir, this.#savedState())
    } catch (error) {
      if (hasServedFrom(dataDir))
        tell?.(
          'warn',
          `the state cannot be saved (${systemErrorText(error)}): what was issued before is refused`,
        )
      try {
        removeSavedState(dataDir)
      } catch {
        // The directory lets no file be removed either.
      }
    }
  }

  /** Warns of a half full state, and refuses everything from now on if the directory or sites.jsonl is another. */
  #check(): void {
    this.#warnOfHalf()
    if (this.#displaced !== undefined) return
    let isOwn: boolean
    try {
      isOwn = statSync(this.#path, { throwIfNoEntry: false })?.ino === this.#inode
      const isInPlace = isOwn && this.sites.isInPlace
      this.#isUnseen = false
      if (isInPlace) return
    } catch (error) {
      // The user may lack a permission now. Open files and sockets still work, so visitors are served on.
      if (!this.#isUnseen)
        this.#options.tell?.('error', `POWGATE_DATA_DIR cannot be looked into: ${systemErrorText(error)}`)
      this.#isUnseen = true
      return
    }
    this.#displaced = this.#displacement(isOwn)
    this.#options.tell?.('error', this.#displaced)
  }

  /** @param hasOwnSocket whether the socket in the directory is this process' */
  #displacement(hasOwnSocket: boolean): string {
    const dataDir = resolve(this.#options.dataDir)
    const file = join(dataDir, SITES_JSONL)
    const hasFile = existsSync(file)
    const line = (what: string, step = '') => `${what} under the running service: ${step}restart it`
    if (hasOwnSocket && hasFile) return line(`${file} was replaced, or written by somebody else,`)
    if (hasOwnSocket)
      return line(`${file} was removed`, `put it back (cp ${this.sites.openFile} ${file}), then `)
    if (hasFile) return line(`the data directory ${dataDir} was moved or replaced, or its socket removed,`)
    return line(
      `the data directory ${dataDir} was moved away, or its disk unmounted,`,
      'put it back, or else save what the service remembers (powgate site export --from-service, with POWGATE_ADMIN_PORT), then ',
    )
  }

  #warnOfHalf(): void {
    const { isHalfFull } = this.state // then Engine's `#addProof` makes no new meters of networks
    if (isHalfFull && !this.#wasHalfFull)
      this.#options.tell?.(
        'warn',
        'the state is half full: networks without a meter are not counted, so a flood from them pays only for its addresses; raise POWGATE_STATE_MAX_MB',
      )
    this.#wasHalfFull = isHalfFull
  }

  #serve(socket: Socket): void {
    const reader = new CallReader()
    this.#clients.add(socket)
    let isAnswering = false
    // A change of sites waits for the disk, and later calls of this client wait for it, so that replies keep their order.
    const answerAll = async () => {
      if (isAnswering) return
      isAnswering = true
      try {
        for (let call = reader.next(); call !== undefined; call = reader.next()) {
          const reply = this.#answer(call)
          socket.write(reply instanceof Buffer ? reply : await reply)
        }
        isAnswering = false
      } catch {
        socket.destroy() // the bytes are no call, so nobody knows where the next one begins
      }
    }
    socket.on('data', bytes => {
      reader.add(bytes)
      void answerAll()
    })
    socket.on('error', () => {})
    socket.on('close', () => {
      this.#clients.delete(socket)
      if (this.isIdle) this.#options.onIdle?.()
    })
  }

  #answer(call: Call): Buffer | Promise<Buffer> {
    switch (call.name) {
      case 'evalsha':
      case 'eval':
        return this.#batch(call)
      case 'sites':
        return this.#displaced === undefined
          ? answerOf(this.sites, call.utf8(1)).then(text => bulkReply(Buffer.from(text)))
          : errorReply('ERR', this.#displaced)
      case 'leave':
        return this.#options.onLeaveRequest?.() ? OK_REPLY : errorReply('ERR', this.#options.who)
      case 'info': {
        const { windows, marks } = this.state
        return bulkReply(Buffer.from(`powgate_layout:${LAYOUT}\r\nkeys:${windows.size + marks.size}\r\n`))
      }
      case 'time':
        return timeReply(Date.now()) // compared with this host's clock (client/inspection.ts), so never with a test's
      case 'ping':
      case 'select':
        return OK_REPLY
      default:
        return errorReply('ERR', `no command ${call.name}`)
    }
  }

  #batch(call: Call): Buffer {
    if (this.#displaced !== undefined) return errorReply('ERR', this.#displaced)
    const { isFull, bytes } = this.state
    if (isFull) return errorReply('OOM', `the state holds ${bytes} bytes, its bound (POWGATE_STATE_MAX_MB)`)
    try {
      return bulkReply(this.#engine.run(call))
    } catch (error) {
      return errorReply('ERR', (error as Error).message)
    }
  }
}

function timeReply(nowMs: number): Buffer {
  const parts = [Math.floor(nowMs / 1000), (nowMs % 1000) * 1000] // seconds, microseconds
  return Buffer.concat([Buffer.from('*2\r\n'), ...parts.map(part => bulkReply(Buffer.from(String(part))))])
}

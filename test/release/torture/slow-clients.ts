/**
 * Clients that occupy a server's connections without using them, each kind in its own way. Thousands of them run in a process
 * of their own, so that their cost does not affect measured clients. This file is also the entry of that process.
 */

import { connect, type Socket } from 'node:net'
import { setPriority } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { carryOut, OrderProcess } from '../../harness/processes.ts'

interface SlowKind {
  readonly name: string
  /** The group that a case reports on. */
  readonly group: 'headers' | 'bodies' | 'idle'
  /** Bytes sent at once. */
  readonly start: string
  /** Bytes sent afterwards, at this interval. */
  readonly drip?: { readonly text: string; readonly everyMs: number } | undefined
}

const LINE = 'GET /challenge HTTP/1.1\r\nHost: powgate\r\n'
const BODY_HEAD =
  'POST /verify HTTP/1.1\r\nHost: powgate\r\nX-Site-Key: SITE\r\nContent-Type: application/json\r\n'
const UNASKED = 'POST /nothing HTTP/1.1\r\nHost: powgate\r\nContent-Length: 4000\r\n\r\n'
const ANSWERED = 'GET /nothing HTTP/1.1\r\nHost: powgate\r\n\r\n'

/** @param drip sent at intervals of `everyMs`; `SITE` stands for the key of a site */
const slow = (
  group: SlowKind['group'],
  name: string,
  start: string,
  drip?: string,
  everyMs = 1000,
): SlowKind => ({ group, name, start, drip: drip === undefined ? undefined : { text: drip, everyMs } })

export const SLOW_KINDS: readonly SlowKind[] = [
  slow('headers', 'header, byte by byte', `${LINE}X-A: `, 'a'),
  slow('headers', 'header, line by line', LINE, 'X-A: b\r\n', 4000),
  slow('headers', 'stops after the request line', 'GET /challenge HTTP/1.1\r\n'),
  slow('headers', 'header, byte by byte, after an answer', `${ANSWERED}${LINE}X-A: `, 'a'),
  slow('bodies', 'body, byte by byte', `${BODY_HEAD}Content-Length: 4000\r\n\r\n`, ' '),
  slow('bodies', 'stops in mid-body', `${BODY_HEAD}Content-Length: 4000\r\n\r\n{"nonce":`),
  slow(
    'bodies',
    'body in chunks, byte by byte',
    `${BODY_HEAD}Transfer-Encoding: chunked\r\n\r\n`,
    '1\r\n \r\n',
  ),
  slow('bodies', 'a body that nobody asked for, byte by byte', UNASKED, ' '),
  slow('idle', 'says nothing', ''),
  slow('idle', 'says nothing after an answer', ANSWERED),
]

/** One connection, which records when the other side ended it. */
class SlowClient {
  readonly kind: SlowKind
  /** By `performance.now`; undefined: not yet. */
  connectedAtMs: number | undefined
  endedAtMs: number | undefined
  readonly #socket: Socket
  #timer: NodeJS.Timeout | undefined

  /** @param header sent first for the PROXY protocol; empty: nothing */
  constructor(kind: SlowKind, port: number, siteKey: string, header: Buffer) {
    this.kind = kind
    const socket = connect({ port, host: '127.0.0.1' })
    this.#socket = socket
    socket.on('error', () => {}) // 'close' follows
    socket.once('close', () => this.#ended())
    socket.once('end', () => this.#ended())
    socket.once('connect', () => {
      this.connectedAtMs = performance.now()
      this.#send(Buffer.concat([header, Buffer.from(kind.start.replaceAll('SITE', siteKey))]))
      const { drip } = kind
      if (drip !== undefined) this.#timer = setInterval(() => this.#send(drip.text), drip.everyMs)
      socket.resume()
    })
  }

  #send(bytes: Buffer | string): void {
    if (bytes.length === 0 || this.#socket.writableLength > 0) return
    this.#socket.write(bytes)
  }

  #ended(): void {
    this.endedAtMs ??= performance.now()
    clearInterval(this.#timer)
    this.#socket.destroy()
  }
}

/** Opens clients, indices into SLOW_KINDS; or tells what has become of them. */
type Order =
  | {
      readonly kinds: readonly number[]
      readonly port: number
      readonly siteKey: string
      readonly header: Buffer
    }
  | 'tell'

interface CrowdState {
  readonly connected: number
  /** Clients that could not connect. */
  readonly failed: number
  /** Clients whose connections the service has not ended. */
  readonly left: number
  readonly leftKinds: readonly string[]
  /** The longest life of ended connections, by group. */
  readonly livedMs: Readonly<Record<string, number>>
}

const STEP_MS = 5
/** Clients opened in each step: 2,000 a second. */
const STEP_CLIENTS = 10
const clients: SlowClient[] = []

export class SlowCrowd {
  readonly #process = new OrderProcess<Order>(new URL(import.meta.url), ['crowd'])

  /** Resolves when all clients have been opened. @param header sent first for the PROXY protocol; empty: nothing */
  async open(kinds: readonly number[], port: number, siteKey: string, header: Buffer): Promise<void> {
    await this.#process.ask({ kinds, port, siteKey, header })
  }

  state(): Promise<CrowdState> {
    return this.#process.ask('tell')
  }

  stop(): void {
    this.#process.kill()
  }
}

async function act(order: Order): Promise<CrowdState> {
  if (order === 'tell') return stateOf(clients)
  const { kinds, port, siteKey, header } = order
  for (const index of kinds) {
    clients.push(new SlowClient(SLOW_KINDS[index]!, port, siteKey, Buffer.from(header)))
    if (clients.length % STEP_CLIENTS === 0) await sleep(STEP_MS)
  }
  return stateOf(clients)
}

function stateOf(clients: readonly SlowClient[]): CrowdState {
  const livedMs: Record<string, number> = {}
  const leftKinds = new Set<string>()
  let [connected, failed, left] = [0, 0, 0]
  for (const { kind, connectedAtMs, endedAtMs } of clients) {
    if (connectedAtMs !== undefined) connected++
    if (endedAtMs === undefined) {
      left++
      leftKinds.add(kind.name)
    } else if (connectedAtMs === undefined) failed++
    else livedMs[kind.group] = Math.max(livedMs[kind.group] ?? 0, endedAtMs - connectedAtMs)
  }
  return { connected, failed, left, leftKinds: [...leftKinds], livedMs }
}

if (process.argv[2] === 'crowd' && process.send !== undefined) {
  // A lower priority than the measured clients and the service.
  setPriority(10)
  carryOut(act)
}

/** Sends many bad inputs at once, each on a connection of its own, and passes on every byte that comes back. */

import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { BadInput } from './bad-inputs.ts'

export interface Seen {
  readonly index: number
  readonly input: BadInput
  /** As latin1 text; '' if nothing came. */
  readonly received: string
  readonly isClosed: boolean
}

interface LaneOptions {
  readonly port: number
  readonly lanes: number
  /** @returns undefined when there are no more inputs */
  next(): { readonly index: number; readonly input: BadInput; readonly from: string } | undefined
  seen(seen: Seen): void
}

/** Wait for an answer; servers treat many inputs as the beginning of a request and send none. */
const ANSWER_MS = 200
/** Wait for a second answer. */
const MORE_MS = 5
/** Pause between writes; without one the server probably reads several at once. */
const WRITE_MS = 1

/** @returns how many connections could not be made */
export async function sendAll(options: LaneOptions): Promise<number> {
  let unreachable = 0
  const lane = async () => {
    for (let item = options.next(); item !== undefined; item = options.next()) {
      const { index, input, from } = item
      const result = await send(options.port, from, input)
      if (result === undefined) unreachable++
      else options.seen({ index, input, ...result })
    }
  }
  await Promise.all(Array.from({ length: options.lanes }, lane))
  return unreachable
}

/** @returns undefined if no connection could be made */
function send(port: number, from: string, { parts, ending }: BadInput) {
  return new Promise<Pick<Seen, 'received' | 'isClosed'> | undefined>(resolve => {
    let received = ''
    let isConnected = false
    let timer: NodeJS.Timeout | undefined
    const socket = connect({ port, host: '127.0.0.1', localAddress: from, noDelay: true })
    const done = (isClosed: boolean) => {
      clearTimeout(timer)
      socket.removeAllListeners('data')
      if (!isClosed) socket.resetAndDestroy() // a reset keeps no port in TIME_WAIT
      resolve(isConnected ? { received, isClosed } : undefined)
    }
    socket.setEncoding('latin1')
    socket.on('error', () => {}) // 'close' follows
    socket.once('close', () => done(true))
    socket.on('data', (text: string) => {
      received += text
      clearTimeout(timer)
      timer = setTimeout(done, MORE_MS, false)
    })
    socket.once('connect', () => {
      isConnected = true
      void write(socket, parts).then(() => {
        if (socket.destroyed) return
        if (ending === 'reset') done(false)
        else {
          if (ending === 'finish') socket.end()
          timer ??= setTimeout(done, ANSWER_MS, false) // unless an answer has begun to come
        }
      })
    })
  })
}

async function write(socket: ReturnType<typeof connect>, parts: readonly string[]): Promise<void> {
  // Pauses between a few parts imitate a slow network; with hundreds of parts, pauses would take too long.
  const pauses = parts.length <= 4
  for (const [index, part] of parts.entries()) {
    if (index > 0) await (pauses ? sleep(WRITE_MS) : new Promise(resolve => setImmediate(resolve)))
    if (socket.destroyed) return
    socket.write(part, 'latin1')
  }
}

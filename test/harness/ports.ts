/**
 * TCP ports on loopback for servers under test. Test files run side by side, and seconds pass between finding a free port and
 * listening on it. So each process takes ports from a block of its own, which it reserves by listening on the block's first
 * port.
 */

import { randomInt } from 'node:crypto'
import { connect, createServer } from 'node:net'
import { eventually } from './eventually.ts'

/**
 * Below the kernel's ports for outgoing connections, any of which could take a port that was just free. A node of a Redis
 * Cluster also needs the port 10,000 higher for its bus, which must be in no block.
 */
const [FIRST_PORT, LAST_PORT] = [12_000, 21_999]
const BLOCK_PORTS = 100
const BLOCKS = (LAST_PORT + 1 - FIRST_PORT) / BLOCK_PORTS

let next = 0
let blockEnd = 0
let claiming: Promise<void> | undefined

/** A port on which nothing listens, and which neither this nor another running process has received. */
export async function freePort(): Promise<number> {
  for (;;) {
    if (next < blockEnd) {
      const port = next++
      if (await isFree(port)) return port
    } else {
      claiming ??= claimBlock().finally(() => (claiming = undefined))
      await claiming
    }
  }
}

async function claimBlock(): Promise<void> {
  for (;;) {
    const first = FIRST_PORT + BLOCK_PORTS * randomInt(BLOCKS)
    if (!(await hold(first))) continue
    next = first + 1
    blockEnd = first + BLOCK_PORTS
    return
  }
}

function hold(port: number): Promise<boolean> {
  return new Promise(resolve => {
    const server = createServer(socket => socket.destroy())
    server.once('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => resolve(true))
    server.unref()
  })
}

function isFree(port: number): Promise<boolean> {
  return new Promise(resolve => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  })
}

/** Long enough for a busy machine. */
const ACCEPTS_WITHIN_MS = 60_000

/** @param hasEnded whether the server has ended, so that waiting is useless */
export async function untilAccepting(port: number, hasEnded = () => false): Promise<void> {
  await eventually(ACCEPTS_WITHIN_MS, `port ${port} accepts connections`, () => {
    if (hasEnded()) throw new Error(`the server on port ${port} has ended`)
    return new Promise<boolean>(resolve => {
      const socket = connect({ port, host: '127.0.0.1' })
      socket.once('connect', () => {
        resolve(true)
        socket.destroy()
      })
      socket.once('error', () => resolve(false))
    })
  })
}

/**
 * TCP ports on loopback for servers under test. Test files run side by side, and seconds pass between finding a free port and
 * listening on it. So each process takes ports from a block of its own, which it reserves by listening on the block's first
 * port.
 */

import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { connect, createServer, type Server } from 'node:net'
import { eventually, PATIENCE_MS } from './eventually.ts'

/** Below the kernel's ports for outgoing connections, any of which could take a port that was just free. */
const { POWGATE_TEST_PORTS = '12000-21999' } = process.env
const BLOCK_PORTS = 100
const CLAIMS_MAX = 10_000

let next = 0
let blockEnd = 0
let claiming: Promise<void> | undefined

/** A port on which nothing listens, and which neither this nor another running process has received. */
export async function freePort(): Promise<number> {
  for (;;) {
    if (next < blockEnd) {
      const port = next++
      const held = await hold(port)
      if (held !== undefined) return once(held.close(), 'close').then(() => port)
    } else {
      claiming ??= claimBlock().finally(() => (claiming = undefined))
      await claiming
    }
  }
}

async function claimBlock(): Promise<void> {
  const [from, to] = POWGATE_TEST_PORTS.split('-').map(Number) as [number, number]
  const blocks = Math.floor((to + 1 - from) / BLOCK_PORTS)
  for (let claims = 0; blocks > 0 && claims < CLAIMS_MAX; claims++) {
    const first = from + BLOCK_PORTS * randomInt(blocks)
    if (!(await hold(first))) continue
    next = first + 1
    blockEnd = first + BLOCK_PORTS
    return
  }
  throw new Error(
    `no ${BLOCK_PORTS} ports are free in POWGATE_TEST_PORTS=${POWGATE_TEST_PORTS} (expected FIRST-LAST)`,
  )
}

export async function listenAnywhere(server: Server): Promise<number> {
  const port = await freePort()
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  return port
}

/** @returns what listens on the port from now on; undefined if something else does */
function hold(port: number): Promise<Server | undefined> {
  return new Promise(resolve => {
    const server = createServer(socket => socket.destroy()).unref()
    server.once('error', () => resolve(undefined))
    server.listen(port, '127.0.0.1', () => resolve(server))
  })
}

/** @param hasEnded whether the server has ended, so that waiting is useless */
export async function untilAccepting(port: number, hasEnded = () => false): Promise<void> {
  await eventually(PATIENCE_MS, `port ${port} accepts connections`, () => {
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

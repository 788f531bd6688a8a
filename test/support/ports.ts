/**
 * TCP ports on loopback for servers under test. Test files run side by side, and between the moment at which a port was
 * found free and the one at which a server listens on it lie seconds: so each process takes ports from a block that it
 * holds alone, by listening on the block's first port for as long as it lives.
 */

import { randomInt } from 'node:crypto'
import { createServer } from 'node:net'

/**
 * Below the ports that the kernel gives to outgoing connections, any of which could take one that was free a moment
 * ago; low enough that a node of a Redis Cluster has 10,000 more for its bus there, in nobody's block.
 */
const [FIRST_PORT, LAST_PORT] = [12_000, 21_999]
const BLOCK_PORTS = 100
const BLOCKS = (LAST_PORT + 1 - FIRST_PORT) / BLOCK_PORTS

let next = 0
let blockEnd = 0
let claiming: Promise<void> | undefined

/** A port that nobody listens on now, and that neither this process nor another that is running has been given. */
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

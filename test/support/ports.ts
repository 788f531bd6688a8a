import { randomInt } from 'node:crypto'
import { createServer } from 'node:net'

/** Below the ports that the kernel gives to outgoing connections, any of which could take one that was free a moment ago. */
const [FIRST_PORT, LAST_PORT] = [12_000, 31_999]

const given = new Set<number>()

/** A TCP port on loopback that nobody listens on now, and that this process has not been given before. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(FIRST_PORT, LAST_PORT + 1)
    if (given.has(port)) continue
    given.add(port)
    if (await isFree(port)) return port
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise(resolve => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  })
}

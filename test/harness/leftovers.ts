/** Servers that a test file has started. A server left running by a failed test would keep the whole run waiting. */

import { after } from 'node:test'

interface Server {
  stop(): Promise<void>
}

/** Running servers: added when started, removed when stopped. */
export const leftovers = new Set<Server>()

if (process.argv[1]?.endsWith('.test.ts')) {
  after(async () => {
    for (const server of [...leftovers].reverse()) await server.stop()
  })
}

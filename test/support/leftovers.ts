/** Servers that a test file has started: one left running by a test that failed would keep the whole run waiting. */

import { after } from 'node:test'

interface Server {
  stop(): Promise<void>
}

/** What runs; whoever starts something adds it, and takes it out when it is stopped. */
export const leftovers = new Set<Server>()

if (process.argv[1]?.endsWith('.test.ts')) {
  after(async () => {
    for (const server of [...leftovers].reverse()) await server.stop()
  })
}

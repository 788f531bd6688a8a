/** Measures how long a client that only sends PING waits for a busy Redis. The client has a process of its own. */

import { fork } from 'node:child_process'
import { once } from 'node:events'

export interface Pings {
  readonly count: number
  readonly minMs: number
  readonly meanMs: number
  readonly maxMs: number
}

const CHILD = new URL('./ping-child.ts', import.meta.url).pathname

/** @param port on 127.0.0.1 */
export async function pinging(port: number, load: () => Promise<void>): Promise<Pings> {
  const child = fork(CHILD, [String(port)])
  const ended = once(child, 'exit').then(([code]) => {
    throw new Error(`the process that sends PING ended with ${code}`)
  })
  ended.catch(() => {}) // It is also ended here, when nobody waits for that.
  try {
    await Promise.race([once(child, 'message'), ended])
    child.send('start')
    await load()
    child.send('stop')
    const [pings] = await Promise.race([once(child, 'message'), ended])
    return pings as Pings
  } finally {
    child.kill()
  }
}

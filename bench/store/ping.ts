/**
 * Measures how long a client that only sends PING waits for a busy Redis. The client has a process of its own, of which this file
 * is the entry too.
 */

import { fork } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'

export interface Pings {
  readonly count: number
  readonly minMs: number
  readonly meanMs: number
  readonly maxMs: number
}

const ROLE = 'ping'
/** As redis-cli --latency does, but often enough for a short load. */
const PAUSE_MS = 2

/** @param port on 127.0.0.1 */
export async function pinging(port: number, load: () => Promise<void>): Promise<Pings> {
  const child = fork(new URL(import.meta.url), [ROLE, String(port)])
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

function ping(port: number): void {
  const latenciesMs: number[] = []
  const socket = connect({ port, host: '127.0.0.1', noDelay: true })
  let sentAtMs = 0
  let isCounting = false
  const send = () => {
    sentAtMs = performance.now()
    socket.write('PING\r\n')
  }
  socket.once('connect', send)
  socket.once('data', () => process.send!('ready'))
  socket.on('data', () => {
    if (isCounting) latenciesMs.push(performance.now() - sentAtMs)
    setTimeout(send, PAUSE_MS)
  })
  process.on('message', order => {
    isCounting = order === 'start'
    if (isCounting) return
    const count = latenciesMs.length
    const pings: Pings = {
      count,
      minMs: Math.min(...latenciesMs),
      meanMs: latenciesMs.reduce((sum, ms) => sum + ms, 0) / count,
      maxMs: Math.max(...latenciesMs),
    }
    process.send!(pings)
  })
  process.on('disconnect', () => process.exit()) // the bench has gone
}

if (process.argv[2] === ROLE && process.send !== undefined) ping(Number(process.argv[3]))

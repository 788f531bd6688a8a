/**
 * Measures how long a client that only sends PING waits for a busy Redis. The client has a process of its own, of which this file
 * is the entry too.
 */

import { once } from 'node:events'
import { connect } from 'node:net'
import { carryOut, OrderProcess } from '../../test/harness/processes.ts'

export interface Pings {
  readonly minMs: number
  readonly meanMs: number
  readonly maxMs: number
}

const ROLE = 'ping'
type Order = 'start' | 'stop'
/** As redis-cli --latency does, but often enough for a short load. */
const PAUSE_MS = 2

/** @param port on 127.0.0.1 */
export async function pinging(port: number, load: () => Promise<void>): Promise<Pings> {
  const client = new OrderProcess<Order>(new URL(import.meta.url), [ROLE, String(port)])
  try {
    await client.ask('start')
    await load()
    return await client.ask('stop')
  } finally {
    await client.stop()
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
  const isAnswered = once(socket, 'data')
  socket.on('data', () => {
    if (isCounting) latenciesMs.push(performance.now() - sentAtMs)
    setTimeout(send, PAUSE_MS)
  })
  carryOut(async (order: Order): Promise<Pings | undefined> => {
    await isAnswered
    isCounting = order === 'start'
    if (isCounting) return undefined
    return {
      minMs: Math.min(...latenciesMs),
      meanMs: latenciesMs.reduce((sum, ms) => sum + ms, 0) / latenciesMs.length,
      maxMs: Math.max(...latenciesMs),
    }
  })
}

if (process.argv[2] === ROLE && process.send !== undefined) ping(Number(process.argv[3]))

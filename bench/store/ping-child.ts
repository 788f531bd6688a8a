/** Entry of the process that sends PING. It tells when it is connected and, at "stop", how long the answers took. */

import { connect } from 'node:net'
import type { Pings } from './ping.ts'

/** As redis-cli --latency does, but often enough for a short load. */
const PAUSE_MS = 2

const latenciesMs: number[] = []
const socket = connect({ port: Number(process.argv[2]), host: '127.0.0.1', noDelay: true })
let sentAtMs = 0
let isCounting = false

function send(): void {
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
  if (order === 'start') {
    isCounting = true
    return
  }
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

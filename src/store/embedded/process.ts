/**
 * The store process, which the primary forks, so that no dashboard, scrape or reload makes a request wait. It saves its state and ends
 * when the primary says so, or when the primary has gone and no worker is connected any more.
 */

import { resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { memoryUsage } from '../../config/open-files.ts'
import { StoreServer } from './server.ts'

export type StoreMessage =
  | { readonly type: 'serves' }
  | StoreUsage
  /** The line says why it cannot serve, or ends. */
  | { readonly type: 'failed'; readonly line: string }
  | { readonly type: 'tells'; readonly level: 'info' | 'warn' | 'error'; readonly text: string }

/** Sent each second. A process that sends nothing for long is killed (process/store-process.ts). */
export interface StoreUsage {
  readonly type: 'lives'
  readonly cpu: NodeJS.CpuUsage
  readonly memory: NodeJS.MemoryUsage
}

const [dataDir = '', stateBytesMax = ''] = process.argv.slice(2)
let isEnding = false
let server: StoreServer | undefined

function send(message: StoreMessage): void {
  if (process.connected) process.send!(message)
}

async function end(): Promise<void> {
  if (isEnding) return
  isEnding = true
  await sleep(0) // so that the last answer goes out
  await server?.close({ saves: true })
  process.exit(0)
}

process.title = 'powgate store'
process.on('uncaughtExceptionMonitor', ({ message }) => send({ type: 'failed', line: message })) // for the log
const sendUsage = () => send({ type: 'lives', cpu: process.cpuUsage(), memory: memoryUsage() })
sendUsage()
setInterval(sendUsage, 1000).unref()
// Terminals and service managers signal all processes of a service. The primary acts, and tells this one.
for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGUSR1', 'SIGUSR2'] as const)
  process.on(signal, () => {})
process.on('message', () => void end()) // the primary sends only the order to end
/** Called also once the server is open, because there was none to end if the primary went before. */
function endIfOrphan(): void {
  if (!process.connected && server?.isIdle) void end()
}
process.on('disconnect', endIfOrphan)

try {
  server = await StoreServer.open({
    dataDir,
    stateBytesMax: Number(stateBytesMax),
    who: `the service of process ${process.ppid}`,
    onLeaveRequest: () => {
      const isOrphan = !process.connected
      if (isOrphan) void end()
      return isOrphan
    },
    onIdle: endIfOrphan,
    onWaiting: who =>
      send({ type: 'tells', level: 'warn', text: `${resolve(dataDir)} is in use by ${who}: waiting` }),
    tell: (level, text) => send({ type: 'tells', level, text }),
  })
  send({ type: 'serves' })
  endIfOrphan()
} catch (error) {
  send({ type: 'failed', line: (error as Error).message })
  process.exitCode = 1
  if (process.connected) process.disconnect()
}

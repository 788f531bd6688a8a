/** A worker gets its settings from the primary, serves, and ends when told or when the primary has gone. */

import cluster from 'node:cluster'
import { parseConfig } from '../config/config.ts'
import { resolveSecrets, secretTexts } from '../config/secrets.ts'
import type { CachedRecords } from '../domain/site.ts'
import { createLogger, endOnFault, logDestination, logOutput } from '../log/logger.ts'
import { repeat, type Server, startServer } from '../server.ts'
import { serverBuild, UNKNOWN_BUILD } from '../server-build.ts'
import { VERSION } from '../version.ts'
import type { PrimaryMessage, WorkerMessage } from './worker-handle.ts'

const READINESS_MS = 500
const STATS_MS = 1000
/** The primary process must send the start order within this time. */
const ORDER_MS_MAX = 10_000

type StartOrder = Extract<PrimaryMessage, { type: 'start' }>

export async function runWorker(): Promise<void> {
  let server: Server | undefined
  let isLeaving = false
  let lost: CachedRecords // the newest
  /** @param ask the number of the primary's question, which wants the numbers of this moment */
  const sendStats = async (ask?: number) => {
    if (server === undefined) return
    const answers = ask === undefined ? {} : { answers: ask }
    await send({ type: 'stats', snapshot: server.stats.snapshot(), ...answers })
  }
  const sendCounts = async () => {
    await sendStats()
    const counts = server?.backends.take() ?? []
    if (counts.length > 0) await send({ type: 'backends', counts })
  }
  const leave = async () => {
    if (isLeaving) return
    isLeaving = true
    await server?.drain()
    logOutput.giveUpWaiting()
    await sendCounts()
    process.exit(0)
  }
  // Listens before the start, during which the worker may be asked to end.
  const order = new Promise<StartOrder>(resolve => {
    process.on('message', (message: PrimaryMessage) => {
      switch (message.type) {
        case 'start':
          lost = message.lost
          resolve(message)
          break
        case 'lost':
          lost = message.lost
          server?.remember(lost)
          break
        case 'ask-stats':
          void sendStats(message.ask)
          break
        case 'drain':
          void leave()
          break
      }
    })
  })
  // The flag keeps node:cluster from exiting at once when the primary has gone.
  cluster.worker!.on('disconnect', () => {
    cluster.worker!.exitedAfterDisconnect = true
    void leave()
  })
  // Terminals and service managers signal the whole process group. Only the primary process acts on it.
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => {})

  const build = serverBuild()
  void send({ type: 'hello', version: VERSION, node: process.version, server: build })
  const unanswered = setTimeout(() => {
    process.stderr.write(
      'no primary process of powgate answers: start it as one process, which forks its own workers (pm2: without -i)\n',
    )
    process.exit(1)
  }, ORDER_MS_MAX)
  const { index, settings, wholeStoreMs } = await order
  clearTimeout(unanswered)
  process.title = `powgate worker ${index}`
  try {
    const config = parseConfig(settings)
    const secrets = [...secretTexts(config, settings), ...resolveSecrets(config)]
    const output = await logDestination(config.logFormat)
    const log = createLogger(config.logLevel, { worker: index }, secrets, output)
    endOnFault(log)
    if (!build.isKnown) log.warn(build, UNKNOWN_BUILD)
    server = await startServer(config, log, index, wholeStoreMs)
    server.remember(lost!) // before the first request, which comes in a later turn of the event loop
  } catch (error) {
    await send({ type: 'setup-failed', line: error instanceof Error ? error.message : String(error) })
    process.exit(1)
  }
  const { store } = server
  // Each message waits for the last one, or a primary that cannot keep up would make a queue grow here without bound.
  void repeat(() => send({ type: 'ready', isReady: store.isReady() }), READINESS_MS)
  void send({ type: 'listening' })
  void repeat(sendCounts, STATS_MS)
}

/** Resolves once sent, or if the primary has gone. */
function send(message: WorkerMessage): Promise<void> {
  return new Promise(resolve => {
    if (process.connected) process.send!(message, undefined, undefined, () => resolve())
    else resolve()
  })
}

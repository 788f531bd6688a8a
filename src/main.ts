/** Entry: checks the configuration, prepares the store, then forks workers, until a signal says stop. */

import cluster from 'node:cluster'
import { createServer } from 'node:net'
import { prepareStart } from './admin/first-start.ts'
import { metricsRoute } from './admin/metrics-route.ts'
import { startAdminServer } from './admin/server.ts'
import { Primary, type PrimaryMessage, type WorkerMessage } from './cluster.ts'
import { type Config, localUrl, parseConfig } from './config.ts'
import { dashboard } from './dashboard/start.ts'
import { ConfigError, gatherSettings } from './gather-settings.ts'
import { createLogger } from './log.ts'
import { Totals } from './observe/totals.ts'
import { ListenError, type Server, startServer } from './server.ts'
import { StoreSetupError } from './store/store.ts'

async function runPrimary(): Promise<void> {
  try {
    const { values, problems } = gatherSettings(process.env)
    const loaded = parseConfig(values, problems)
    const log = createLogger(loaded.logLevel)
    // Before the store is touched: a start that cannot listen makes no site and prints no key.
    const claimed = { ...loaded, port: await claimPort(loaded) }
    const { store, demo } = await prepareStart(claimed, log)
    const config: Config = { ...claimed, demo }
    const totals = new Totals()
    const primary = new Primary(config, values, log, totals)
    await primary.start().catch(error => {
      throw new StoreSetupError((error as Error).message)
    })
    const admin = await startAdminServer(
      config,
      primary,
      [metricsRoute(totals, primary), ...dashboard(config, totals, primary)],
      log,
    )
    const { host, port, workers } = config
    if (demo === 'on') log.info(`the demo page is at ${localUrl(config)}/demo`)
    log.info({ host, port, workers, store }, `powgate listens on ${localUrl(config)}`)
    onStopSignal(async signal => {
      log.info({ signal }, 'stopping: requests under way are finished first')
      admin?.close()
      await primary.drain()
      process.exit(0)
    })
  } catch (error) {
    exitWithProblems(error)
  }
}

const READINESS_MS = 500
const STATS_MS = 1000

type StartOrder = Extract<PrimaryMessage, { type: 'start' }>

async function runWorker(): Promise<void> {
  const tell = (message: WorkerMessage) => {
    if (process.connected) process.send!(message)
  }
  let server: Server | undefined
  let isLeaving = false
  const tellStats = (ask?: number) => {
    if (server === undefined) return
    const answers = ask === undefined ? {} : { answers: ask }
    tell({ type: 'stats', snapshot: server.stats.snapshot(), ...answers })
  }
  const leave = async () => {
    if (isLeaving) return
    isLeaving = true
    await server?.drain()
    tellStats()
    process.exit(0)
  }
  // Before the start, which takes a moment: it may be told to leave meanwhile.
  const order = new Promise<StartOrder>(resolve => {
    process.on('message', (message: PrimaryMessage) => {
      switch (message.type) {
        case 'start':
          resolve(message)
          break
        case 'ask-stats':
          tellStats(message.ask)
          break
        case 'drain':
          void leave()
          break
      }
    })
  })
  // The primary has gone. Without the mark node:cluster would exit at once.
  cluster.worker!.on('disconnect', () => {
    cluster.worker!.exitedAfterDisconnect = true
    void leave()
  })
  process.on('SIGTERM', () => void leave())
  process.on('SIGINT', () => {}) // a terminal sends it to all; the primary decides

  tell({ type: 'hello' })
  const { index, settings } = await order
  try {
    const config = parseConfig(settings)
    server = await startServer(config, createLogger(config.logLevel, { worker: index }), index)
  } catch (error) {
    tell({ type: 'setup-failed', line: error instanceof Error ? error.message : String(error) })
    process.exit(1)
  }
  const { isReady } = server
  tell({ type: 'listening' })
  tell({ type: 'ready', isReady: isReady() })
  setInterval(() => tell({ type: 'ready', isReady: isReady() }), READINESS_MS).unref()
  setInterval(() => tellStats(), STATS_MS).unref()
}

/** The port that all workers will share. They set SO_REUSEPORT, so only a listener without it finds out who else is there. */
function claimPort(config: Config): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer()
    probe.once('error', (error: NodeJS.ErrnoException) => {
      const cause = error.code === 'EADDRINUSE' ? 'the port is taken' : error.message
      reject(new ListenError(config, cause))
    })
    probe.listen({ host: config.host, port: config.port, exclusive: true }, () => {
      const address = probe.address()
      const port = typeof address === 'object' && address !== null ? address.port : config.port
      probe.close(() => resolve(port))
    })
  })
}

function onStopSignal(stop: (signal: string) => Promise<void>): void {
  let isStopping = false
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => {
      if (isStopping) return
      isStopping = true
      void stop(signal)
    })
  }
}

function exitWithProblems(error: unknown): never {
  if (error instanceof ConfigError) {
    for (const problem of error.problems) process.stderr.write(`${problem}\n`)
  } else if (error instanceof StoreSetupError || error instanceof ListenError) {
    process.stderr.write(`${error.message}\n`)
  } else {
    process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`)
  }
  process.exit(1)
}

// Last, so that every constant above is there.
if (cluster.isWorker) await runWorker()
else await runPrimary()

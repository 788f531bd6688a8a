/** The primary process checks the configuration, prepares the store, and forks workers. */

import cluster from 'node:cluster'
import { startAdminServer } from './admin/admin-server.ts'
import { metricsRoute } from './admin/metrics-route.ts'
import { recordsRoute } from './admin/records-route.ts'
import { type Config, gatherSettings, localUrl, parseConfig, storeNameIn } from './config/config.ts'
import { fewFiles } from './config/open-files.ts'
import { claimPort } from './config/ports.ts'
import { secretTexts } from './config/secrets.ts'
import { startDashboard } from './dashboard/dashboard.ts'
import { createLogger, logDestination, logOutput } from './log/logger.ts'
import { Totals } from './metrics/totals.ts'
import { Backends } from './process/backends.ts'
import { HostRegistry } from './process/host-registry.ts'
import { Lifecycle } from './process/lifecycle.ts'
import { Primary } from './process/primary.ts'
import { SiteMemory } from './process/site-memory.ts'
import { StoreProcess } from './process/store-process.ts'
import { runWorker } from './process/worker.ts'
import { prepareStart } from './sites/prepare-start.ts'
import { writeServiceUrl } from './sites/service-files.ts'
import { troubleOf } from './store/client/trouble.ts'
import { OperatorError } from './words/errors.ts'

const BACKENDS_MS = 5000

async function runPrimary(): Promise<void> {
  process.title = 'powgate primary'
  let storeProcess: StoreProcess | undefined
  let lifecycle: Lifecycle | undefined
  for (const out of [process.stdout, process.stderr]) out.on('error', () => {}) // A full disk must not end the service.
  try {
    const { values, problems } = gatherSettings(process.env)
    const loaded = parseConfig(values, problems)
    const output = await logDestination(loaded.logFormat)
    const log = createLogger(loaded.logLevel, {}, secretTexts(loaded, values), output)
    const siteMemory = new SiteMemory(log)
    const hosts = new HostRegistry(log)
    const backends = new Backends(log)
    // Hosts share the limits of backends. The embedded store notes no host, and this is the only one.
    setInterval(() => backends.update(Math.max(1, hosts.living.length)), BACKENDS_MS).unref()
    const totals = new Totals(() => ({
      logLinesLost: logOutput.linesLost,
      sitesLost: siteMemory.lostCount,
      hostsDiffer: hosts.differencesToOthers.length,
      redeemLimitUsed: backends.redeemLimitUsed,
    }))
    const primary = new Primary(log, totals)
    primary.onBackends = counts => backends.add(counts)
    siteMemory.onLost = records => primary.rememberLost(records)
    storeProcess = loaded.redis === undefined ? new StoreProcess(loaded, log, totals) : undefined
    lifecycle = new Lifecycle({ primary, siteMemory, hosts, log, totals, storeProcess })
    // A start that cannot listen must make no site and print no key.
    const { port: claimedPort, release } = await claimPort(loaded)
    const claimed = { ...loaded, port: claimedPort }
    // The admin port is open before the store answers, and then /readyz says that the service is not ready.
    const routes = [
      metricsRoute(totals, primary, claimed, storeProcess),
      recordsRoute(siteMemory, () => storeNameIn(lifecycle?.config ?? claimed)),
      ...startDashboard(claimed, totals, primary, siteMemory, hosts, backends),
    ]
    await startAdminServer(claimed, primary, routes, log)
    for (const warning of [...loaded.warnings, ...fewFiles(loaded)]) log.warn(warning)
    const explained = (error: Error) => throwExplained(error, claimed)
    const { store, demo } = await prepareStart(claimed, log, totals, storeProcess).catch(explained)
    const config: Config = { ...(await hosts.join(claimed).catch(explained)), demo } // `join` adds the number of shards of all hosts
    await primary.start({ config, settings: values })
    release()
    const { host, port, workers } = config
    writeServiceUrl(config)
    const url = localUrl({ host: /^(0\.0\.0\.0|::)$/.test(host) ? 'localhost' : host, port })
    if (demo === 'on') log.info(`the demo page is at ${url}/demo`)
    log.info({ host, port, workers, store }, `powgate listens on ${url}`)
    lifecycle.started({ config, settings: values })
  } catch (error) {
    if (lifecycle?.isStopping) return // it was told to stop while it waited for the store
    await storeProcess?.end()
    exitWithProblems(error)
  }
}

/** Throws a start's error again. If Redis failed after its first answer, the error becomes one line that names the setting. */
function throwExplained(error: Error, { redis }: Config): never {
  if (redis === undefined || error instanceof OperatorError) throw error
  throw new OperatorError(troubleOf(redis, error.message).line)
}

function exitWithProblems(error: unknown): never {
  const { message, stack } = error as Error
  process.stderr.write(`${error instanceof OperatorError ? message : (stack ?? error)}\n`)
  process.exit(1)
}

// Last, because it needs every constant above.
if (cluster.isWorker) await runWorker()
else await runPrimary()

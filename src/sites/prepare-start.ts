/** What a start does before its workers: waits for the store, creates the first site if there is none, and the demo page's sites. */

import { resolve } from 'node:path'
import { isatty } from 'node:tty'
import { type Config, configFlag, localUrl, shellWord } from '../config/config.ts'
import { isSecretToBeMade, resolveSecrets } from '../config/secrets.ts'
import { isNotDemo, prepareDemoSites } from '../demo/site.ts'
import type { Logger } from '../log/logger.ts'
import type { StoreClient } from '../store/client/store-client.ts'
import { accessWarningOf, hasServedFrom, prepareDataDir } from '../store/embedded/data-dir.ts'
import { createStore } from '../store/open.ts'
import type { SiteStore } from '../store/store.ts'
import { PROGRAM } from '../version.ts'
import type { StoreCause } from '../words/reasons.ts'
import { noSitesText } from './export-file.ts'
import { type FirstKeys, firstKeysPath, readFirstKeys, writeFirstKeys } from './service-files.ts'
import { authorInService, commit, newSite } from './sites.ts'

/** Longer than the service gives a call to the store, because no visitor waits for this one. */
const DEADLINE_MS = 2000
/** The log says that powgate waits for the store, but not in the first second, because both may start together. */
const FIRST_LINE_MS = 1000
const LINE_EVERY_MS = 5000

/** Only pages of this machine may use the first site. */
const FIRST_ORIGINS = ['http://localhost:*', 'http://127.0.0.1:*']

/** Metrics of the primary process (metrics/totals.ts). Until its start is done, only this file sets gauges. */
interface Gauged {
  gauges: Partial<Record<string, number>>
}

/**
 * @param totals its gauges tell why the store does not answer, and are emptied once it does
 * @returns a description of the store, and whether /demo is served
 * @throws OperatorError
 */
export async function prepareStart(
  config: Config,
  log: Logger,
  totals: Gauged,
  storeProcess: { start(): Promise<void> } | undefined,
) {
  // Asked before `resolveSecrets` below makes a new secret. A directory with sites alone has lost none: commands make these without one.
  const isSecretLost = isSecretToBeMade(config) && hasServedFrom(config.dataDir)
  if (storeProcess !== undefined) {
    prepareDataDir(config.dataDir, { makes: true })
    const accessWarning = accessWarningOf(config.dataDir)
    if (accessWarning !== undefined) log.warn(accessWarning)
    await storeProcess.start()
  }
  const secrets = resolveSecrets(config, { makes: true })
  const store: StoreClient = createStore(config, {
    deadlineMs: DEADLINE_MS,
    openTimeoutMs: config.storeWaitMs,
    onWaiting: waitingReporter(config, log, totals, () => store.description),
  })
  try {
    await store.open()
    totals.gauges = {}
    if (isSecretLost)
      log.warn('the secret is missing, so a new one was made: what was issued before is refused')
    const demo = await prepareSites(config, log, store.sites)
    if (demo === 'on') await prepareDemoSites(store.sites, secrets[0]!, authorInService('demo page'))
    return { store: store.description, demo }
  } finally {
    await store.close()
  }
}

/** True if an embedded store never had a record (revision 0). Where all sites were deleted, somebody already knows powgate: no first start. */
export async function isFirstStart({ redis }: Config, store: SiteStore): Promise<boolean> {
  return redis === undefined && (await store.changesSince(undefined)).revision === 0
}

/** Creates a first site on a new host without Redis, for people who try powgate. Returns whether /demo is served. */
async function prepareSites(config: Config, log: Logger, store: SiteStore): Promise<'on' | 'off'> {
  const sites = (await store.listSites()).filter(isNotDemo)
  const isFirst = await isFirstStart(config, store)
  const demo = config.demo === 'auto' ? (isFirst ? 'on' : 'off') : config.demo
  if (isFirst) {
    const { site, apiKey, changes } = newSite({ name: 'demo', origins: FIRST_ORIGINS })
    const keys: FirstKeys = { siteKey: site.siteKey, apiKey }
    writeFirstKeys(config.dataDir, keys) // before the site: if this fails, the next start is a first one still
    await commit(store, changes, authorInService('first start'))
    printFirstSite(keys, config.dataDir, localUrl(config), demo === 'on')
  } else if (sites.length === 0) {
    log[config.redis === undefined ? 'info' : 'warn'](noSitesText(config, { isStart: true })) // Redis may have lost them
  } else if (demo === 'off') {
    const first = readFirstKeys(config.dataDir)?.siteKey
    const isInUse = sites.some(({ siteKey, active }) => siteKey === first && active)
    // Who still tries powgate with the first site may look for the page that the first start served.
    if (isInUse) log.info('/demo is off now, POWGATE_DEMO=on serves it')
  }
  return demo
}

/** Returns a function that tells why the store does not answer: by a gauge at each call, and in the log every 5 s. */
function waitingReporter(config: Config, log: Logger, totals: Gauged, description: () => string) {
  const startedAtMs = performance.now()
  let nextLineAtMs = startedAtMs + FIRST_LINE_MS
  return (why: string, cause: StoreCause) => {
    totals.gauges = { storeUp: 0, [`storeDown ${cause}`]: 1 }
    const now = performance.now()
    if (now < nextLineAtMs) return
    nextLineAtMs = now + LINE_EVERY_MS
    const restSeconds = Math.max(0, Math.round((startedAtMs + config.storeWaitMs - now) / 1000))
    log.warn(`waiting for ${description()}: ${why}; giving up in ${restSeconds} s`)
  }
}

/** Without a terminal, the output goes into a log, so it omits the API key. */
function printFirstSite(keys: FirstKeys, dataDir: string, url: string, hasDemo: boolean): void {
  const { siteKey, apiKey } = keys
  const isUsual = resolve(dataDir) === resolve('data')
  const variable = isUsual ? '' : `POWGATE_DATA_DIR=${shellWord(resolve(dataDir))} `
  const isTerminal = isatty(1)
  const out = isTerminal ? process.stdout : process.stderr
  out.write(`
First start: a demo site was created, for pages of this machine: http://localhost and http://127.0.0.1, any port.

  site key  ${siteKey}
  API key   ${isTerminal ? `${apiKey}   (secret; kept in ${firstKeysPath(dataDir)})` : `in ${firstKeysPath(dataDir)}`}

Try the whole flow with these keys from another terminal:

  ${variable}${PROGRAM} try --url ${url}${configFlag()}

${hasDemo ? `Or open the demo page in a browser (it has a site and keys of its own):\n\n  ${url}/demo\n\n` : ''}`)
}

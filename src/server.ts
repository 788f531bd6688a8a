/** Builds a worker's HTTP server from store, keys, log and routes, and runs its background jobs. */

import { randomBytes, randomInt } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Config } from './config/config.ts'
import { connectionsThatFit } from './config/open-files.ts'
import { listenError } from './config/ports.ts'
import { resolveSecrets } from './config/secrets.ts'
import { DEMO_OFF, demoRoutes } from './demo/demo-routes.ts'
import { DEMO_SITE_KEYS } from './demo/site.ts'
import { AddressTags } from './domain/address-tags.ts'
import { Keyring } from './domain/keyring.ts'
import { PRICING } from './domain/pricing.ts'
import type { CachedRecords } from './domain/site.ts'
import { BackendCounts } from './endpoints/backend-counts.ts'
import type { Service } from './endpoints/service.ts'
import { findWidget, widgetRoutes } from './http/assets.ts'
import type { ContentRoute } from './http/content.ts'
import type { ExchangeHost } from './http/exchange-host.ts'
import { isEveryPeerTrusted, type Listener, listen } from './http/listener.ts'
import { Overload } from './http/overload.ts'
import { EventLog } from './log/event-log.ts'
import { type Logger, logOutput, throttled } from './log/logger.ts'
import { Stats } from './metrics/stats.ts'
import { openapiRoute } from './openapi/document.ts'
import { buildApp } from './routes.ts'
import type { StoreClient } from './store/client/store-client.ts'
import { KeyUses } from './store/key-uses.ts'
import { createStore } from './store/open.ts'
import { SiteDirectory } from './store/site-directory.ts'
import { StoreWatch } from './store/watch.ts'
import { VERSION } from './version.ts'
import { OperatorError } from './words/errors.ts'

/** Workers ask for changed sites this often: a change must reach all of them within 2 s. */
const SITES_MS = 500
/** Some records are read again this often, because the store reports no change of a record that it has lost. */
const SITES_REREAD_MS = 5000
/** Pauses after writing when API keys were used, and after checking the store's clock and evictions. */
const [KEY_USES_MS, WATCH_MS] = [60_000, 60_000]
/** Old audit entries are dropped once in AUDIT_MS. This is tried once in AUDIT_TRY_MS (`auditDropper`). */
const [AUDIT_TRY_MS, AUDIT_MS] = [3_600_000, 86_400_000]
/** A misconfigured proxy repeats its fault, and an overload comes again, so each is logged at most this often. */
const [FORWARDING_LOGGED_MS, CONNECTIONS_LOGGED_MS, OVERLOAD_LOGGED_MS] = [60_000, 10_000, 10_000]
/** After this long without the store the server listens, and requests get 503 until the store answers. */
const FIRST_CONTACT_MS = 1000
/** Loading 10,000 sites and keys fits in this time; others are read while serving. */
const LOAD_MS = 1000
const POLL_MS = 5

const now = () => performance.now()

export interface Server {
  readonly stats: Stats
  readonly backends: BackendCounts
  readonly store: Pick<StoreClient, 'isReady' | 'trouble'>
  /** Serves these records, which the store has lost. */
  remember(lost: CachedRecords): void
  /** Lets connections end, then closes everything. */
  drain(): Promise<void>
}

/**
 * @param wholeStoreMs given to a successor in a rolling restart: it listens only if its whole store answers within this time
 * @throws OperatorError
 */
export async function startServer(
  config: Config,
  log: Logger,
  workerIndex: number,
  wholeStoreMs?: number,
): Promise<Server> {
  // These functions are called once the server is returned, so what they use is there.
  const stats = new Stats({
    readGauges: () => ({
      inFlight: host.inFlight,
      connections: listener.connections(),
      connectionsMax,
      // A 0 in place of evictions that are not known yet would seem to grow later.
      ...(watch.last && { clockOffset: watch.last.clockAheadSeconds, evictedKeys: watch.last.evictedKeys }),
      logLinesLost: logOutput.linesLost,
    }),
    storeTrouble: () => store.trouble(),
    siteNamedBy: (siteKey, apiKeyId) => namedSite(service, siteKey, apiKeyId),
    metricsSites: config.metricsSites,
  })
  const store = openStore(config, log, stats, () => watch.check().catch(() => {}))
  // Only the first worker reports what the watch finds, because all have the same clock and Redis.
  const watch = new StoreWatch(store, (level, about, text) => workerIndex === 0 && log[level](about, text))
  const hidden = config.demo === 'on' ? undefined : DEMO_SITE_KEYS
  const directory = new SiteDirectory(store.sites, now, { hasTestKeys: config.testKeys, hidden })
  const service = composeService(config, store, directory)
  const { sampleKey } = service.keyring.signing
  const eventLog = new EventLog(log, config.logSuccesses, sampleKey, config.logsWholeAddresses)
  const gate = overloadGate(config, log)
  const host = hostOf(config, log, gate, stats, eventLog)
  const background = new AbortController()
  if (wholeStoreMs !== undefined) await untilWhole(store, wholeStoreMs)
  else await waitAtMost(FIRST_CONTACT_MS, () => store.isReady())
  // The store process' trouble lasts if it is of another version than this worker, which would refuse its share of the visitors.
  const trouble = store.trouble()
  if (config.redis === undefined && trouble?.isLasting) throw new OperatorError(trouble.line)
  startJobs(directory, service.keyUses, watch, background.signal) // this loads the directory
  if (workerIndex === 0) void repeat(auditDropper(store, config.auditMs), AUDIT_TRY_MS, background.signal)
  if (store.isReady()) await waitAtMost(LOAD_MS, () => directory.isLoaded)
  const app = buildApp(service, host, contentRoutes(config, log))
  const fit = connectionsThatFit(config.proxyProtocol) // beyond it, clients would hang in the kernel's queue
  const connectionsMax = Math.min(config.connectionsMax || fit, fit)
  const listener = await listenWith(app, host, { ...config, connectionsMax }, log, stats, eventLog)
  gate?.start()
  return {
    stats,
    backends: service.backends,
    store,
    remember: records => directory.remember(records),
    drain: async () => {
      await listener.close()
      host.isDraining = true
      gate?.stop()
      // A connection ends with its next answer or its idle timeout: ending an idle one could lose a request.
      await waitAtMost(config.drainMs, () => listener.connections() === 0)
      background.abort()
      await service.keyUses.flush().catch(() => {}) // a store that is away must not keep the process
      app.close()
      await store.close()
      eventLog.close()
    },
  }
}

function openStore(config: Config, log: Logger, stats: Stats, watchNow: () => void): StoreClient {
  return createStore(config, {
    deadlineMs: config.storeDeadlineMs,
    onCall: stats.storeCalled,
    onChange: (up, cause) => {
      const outageSeconds = stats.storeChanged(up)
      if (up) watchNow()
      if (up) log.info({ cause, outageSeconds }, 'the store answers')
      else log.warn({ cause }, 'the store does not answer')
    },
    onStillAway: cause => log.warn({ cause }, 'the store still does not answer'),
    // Only Redis may be away and fail open. The embedded store is this host's own, and what it cannot do is refused.
    bridge: config.redis && {
      ...config,
      monotonicMs: now,
      onCrowded: () =>
        log.warn(
          { event: 'memory-crowded' },
          'more addresses ask than this worker can remember while Redis is away: new ones share a limit with their network',
        ),
    },
    onNewEpoch: () => stats.counts.storeEpochs.add(),
    onForgotten: (shards, allShards) => {
      log.warn(
        { shards, of: allShards },
        'the store has lost its memory, or may have (a restart, a failover, an eviction, a moved slot, a clock that was set): challenges and tokens from before are refused',
      )
      watchNow()
    },
  })
}

async function listenWith(
  app: Parameters<typeof listen>[0],
  host: ExchangeHost,
  config: Config,
  log: Logger,
  stats: Stats,
  eventLog: EventLog,
): Promise<Listener> {
  const { connectionsMax } = config
  const logFull = throttled(CONNECTIONS_LOGGED_MS, count =>
    log.warn(
      { connectionsMax, count },
      'closed connections: as many are open as POWGATE_CONNECTIONS_MAX, or else the limit of open files, allows; or over half, and one client (a proxy that POWGATE_TRUSTED_PROXIES lacks?) opens many',
    ),
  )
  const listener = await listen(app, host, {
    ...config,
    onWrongHeader: throttled(CONNECTIONS_LOGGED_MS, (count, proxy, why) =>
      log.warn({ peer: eventLog.peerText(proxy), why, count }, 'refused connections of a trusted proxy'),
    ),
    onFull: () => {
      stats.counts.connectionsRefused.add()
      logFull()
    },
  })
  if (listener === undefined) throw listenError(config)
  return listener
}

function hostOf(
  config: Config,
  log: Logger,
  gate: Overload | undefined,
  stats: Stats,
  eventLog: EventLog,
): ExchangeHost {
  return {
    trustedProxies: config.trustedProxies,
    isEveryPeerTrusted: isEveryPeerTrusted(config),
    relay: undefined, // set by `listen`
    ...forwardingReports(log, eventLog, config.proxyProtocol),
    isDraining: false,
    isCrowded: false,
    mayHold: () => true,
    inFlight: 0,
    observer: {
      answered: (exchange, endpoint, status, ending) => {
        stats.answered(exchange, endpoint, status, ending)
        if (ending !== undefined) eventLog.ended(exchange, endpoint, ending)
      },
      aborted: endpoint => stats.aborted(endpoint),
      shed: endpoint => stats.shed(endpoint),
      faulted: (exchange, endpoint, error) => {
        stats.faulted(endpoint)
        eventLog.faulted(exchange, endpoint, error)
      },
    },
    gate,
    newRequestId: requestIds(),
  }
}

function startJobs(directory: SiteDirectory, keyUses: KeyUses, watch: StoreWatch, end: AbortSignal): void {
  void repeat(() => directory.refresh(), SITES_MS, end)
  void repeat(() => directory.refreshSome(), SITES_REREAD_MS, end)
  void repeat(() => keyUses.flush(), KEY_USES_MS, end)
  void repeat(() => watch.check(), WATCH_MS, end)
}

/** Ignores a failed action: it means that the store is away, which requests already make known. */
export async function repeat(action: () => Promise<unknown>, pauseMs: number, end?: AbortSignal) {
  while (!end?.aborted) {
    await action().catch(() => {})
    await sleep(pauseMs, undefined, { signal: end, ref: false }).catch(() => {}) // it throws once `end` is aborted
  }
}

/** Once a day, because the embedded store then writes its file anew; tried each hour, because the store may be away. */
function auditDropper(store: StoreClient, ageMs: number): () => Promise<void> {
  let droppedAtMs = Number.NEGATIVE_INFINITY
  return async () => {
    if (now() - droppedAtMs < AUDIT_MS) return
    await store.dropAudit(ageMs)
    droppedAtMs = now()
  }
}

function forwardingReports(
  log: Logger,
  eventLog: EventLog,
  proxyProtocol: boolean,
): Pick<ExchangeHost, 'onForwardingIgnored' | 'onForwardingMalformed'> {
  return {
    onForwardingIgnored: throttled(FORWARDING_LOGGED_MS, (_, sender) => {
      const peer = eventLog.peerText(sender)
      const what = peer.includes('/') ? 'its address in this network' : 'it'
      const named = proxyProtocol ? ' (the PROXY header names it as the client, so it may be a visitor)' : ''
      log.warn(
        { peer, setting: 'POWGATE_TRUSTED_PROXIES' },
        `X-Forwarded-For is ignored: its sender is not trusted${named}; if it is a proxy of yours, name ${what}`,
      )
    }),
    onForwardingMalformed: throttled(FORWARDING_LOGGED_MS, (_, proxy) =>
      log.warn(
        { peer: eventLog.peerText(proxy) },
        'X-Forwarded-For of a trusted proxy names no client, so its visitors share the address of the proxy and its limits: have it append the address that connects to it, and nothing else',
      ),
    ),
  }
}

function overloadGate({ overloadMs }: Config, log: Logger): Overload | undefined {
  if (overloadMs === undefined) return undefined
  const logShedding = throttled(OVERLOAD_LOGGED_MS, () =>
    log.warn('shedding load: requests queue, so some are refused, challenges first'),
  )
  return new Overload(overloadMs, logShedding)
}

function contentRoutes(config: Config, log: Logger): ContentRoute[] {
  const widget = findWidget()
  if (widget === undefined)
    log.warn('the widget is not built, so /widget.js is not served: run npm run build')
  return [
    openapiRoute(VERSION),
    ...(widget === undefined ? [] : widgetRoutes(widget)),
    ...(config.demo === 'on' ? demoRoutes(config, resolveSecrets(config)[0]!) : [DEMO_OFF]),
  ]
}

/** Returns the site for which metrics count a refused request, even one with a wrong secret, if the worker has it cached. */
function namedSite(
  { sites, apiKeys }: Service,
  siteKey: string,
  apiKeyId: string | undefined,
): string | undefined {
  if (siteKey !== '') return sites.cached(siteKey)?.record.siteKey
  return apiKeyId === undefined ? undefined : apiKeys.cached(apiKeyId)?.siteKey
}

function composeService(config: Config, store: StoreClient, { sites, apiKeys }: SiteDirectory): Service {
  const keyring = new Keyring(resolveSecrets(config))
  return {
    settings: config,
    pricing: PRICING,
    keyring,
    tags: new AddressTags(keyring.signing),
    otherTags: keyring.others.map(key => new AddressTags(key)),
    store: store.requests,
    sites,
    apiKeys,
    keyUses: new KeyUses(store.sites),
    backends: new BackendCounts(config.logsWholeAddresses, config.ipv6PrefixBits),
    now: Date.now,
    randomBits: bits => randomInt(2 ** bits),
  }
}

/** Returns a function whose ids are unique over all workers. */
function requestIds(): () => string {
  const start = randomBytes(8).toString('hex') // no dash in front: ids are typed into command lines
  let count = 0
  return () => `${start}-${(count++).toString(36)}`
}

/** @throws OperatorError, at once for a trouble that lasts after FIRST_CONTACT_MS: before, another node of a Cluster may still answer */
async function untilWhole(store: Server['store'], waitMs: number): Promise<void> {
  const isWhole = () => store.isReady() && store.trouble() === undefined
  await waitAtMost(FIRST_CONTACT_MS, isWhole)
  await waitAtMost(waitMs - FIRST_CONTACT_MS, () => isWhole() || store.trouble()?.isLasting === true)
  if (isWhole()) return
  const { isLasting = false, line = '' } = store.trouble() ?? {}
  const seconds = waitMs / 1000
  throw new OperatorError(
    isLasting ? line : `its store does not answer within ${seconds} s${line && `: ${line}`}`,
  )
}

async function waitAtMost(waitMs: number, isTrue: () => boolean): Promise<void> {
  const giveUpAt = now() + waitMs
  while (!isTrue() && now() < giveUpAt) await sleep(POLL_MS)
}

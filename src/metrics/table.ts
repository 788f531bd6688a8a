/**
 * All metrics: workers count by this table, the primary process adds up, and /metrics and the dashboard show the sums. A metric
 * also needs the line that counts it (in `Stats`; a gauge in `Stats.snapshot`, or of the primary process in start.ts,
 * `totals.gauges` or `processGauges`), a row of docs/reference/metrics.md and a panel of dashboard/grafana.ts. Tests fail without.
 *
 * A flat name is a metric's key and the values of its labels. A histogram has a count for each bucket, not cumulative, and a sum:
 *
 *   requests challenge 200 ok          requestSeconds challenge 0.001       above 0.00075 s, up to 0.001 s
 *   storeOutages                       requestSeconds challenge Infinity    above the last bound
 *                                      requestSeconds challenge sum         in microseconds, see `scale`
 *
 * Never give a key another meaning: a worker may run another version than the primary process. Missing numbers are then 0,
 * numbers without a row are not shown.
 *
 * Labels come from closed lists, to bound the number of series. Site keys are labels only for POWGATE_METRICS_SITES.
 */

import { ENDPOINT_NAMES, ENDPOINTS, type TrafficCount } from '../domain/endpoint.ts'
import { ENDPOINT_LABELS } from '../http/exchange-host.ts'
import { PUZZLES } from '../protocol/proof.ts'
import { JUDGEMENT_WORDS } from '../words/reasons.ts'

/** A number for each flat name. */
export type Values = Record<string, number>

export interface Metric {
  readonly type: 'counter' | 'gauge' | 'histogram'
  readonly name: string
  readonly help: string
  readonly labels?: readonly string[]
  /** Series that exist from the start, at 0: Prometheus sees no increase in a series that begins at 1. */
  readonly fromStart?: readonly string[]
  /** Upper bounds of a histogram's buckets, ascending. Greater values have one more bucket. */
  readonly bounds?: readonly number[]
  /** Values are kept as integers of 1/`scale` of the unit, because a fraction's rounding error would look like a reset. */
  readonly scale?: number
  /** Combines the gauges of all workers. A gauge without this and without a label `worker` is set by the primary process. */
  readonly workers?: 'sum' | 'min' | undefined
  /** Set if the dashboard shows its past (dashboard/history.ts). */
  readonly history?: true
}

const MICROSECONDS = 1e6
const HUNDREDTHS = 100

/** Bounds are finest between 0.1 and 50 ms, where most answers are. */
const LATENCY_BOUNDS_SECONDS = [
  0.0001, 0.0002, 0.0003, 0.0005, 0.00075, 0.001, 0.0015, 0.002, 0.003, 0.005, 0.0075, 0.01, 0.015, 0.02,
  0.03, 0.05, 0.1, 0.2, 0.5, 1, 2,
] as const

/** Maps labels of `requests`, such as `challenge 200 ok`, to the curve of the dashboard's traffic where the answer counts. Refusals have none. */
export const TRAFFIC: ReadonlyMap<string, TrafficCount> = new Map(
  ENDPOINT_NAMES.flatMap(endpoint =>
    Object.entries(ENDPOINTS[endpoint].counts).map(([outcome, line]) => [`${endpoint} 200 ${outcome}`, line]),
  ),
)
/** An alert fires at the first of these refusals (dashboard/alerts.yml). /siteverify answers them with 200, as hosted CAPTCHAs do. */
const ALARMING = ['forgotten', 'from-future'].flatMap(what => [
  `verify 400 nonce-${what}`,
  `verify-token 400 token-${what}`,
  `siteverify 200 token-${what}`,
])
const LIMITS = ENDPOINT_NAMES.flatMap(endpoint =>
  [...ENDPOINTS[endpoint].limits.map(({ policy }) => policy), 'junk'].map(policy => `${endpoint} ${policy}`),
)
const BY_ENDPOINT = { labels: ['endpoint'], fromStart: ENDPOINT_LABELS, history: true } as const

type Options = Omit<Metric, 'type' | 'name' | 'help'>

function counter(name: string, help: string, options: Options = {}) {
  return { type: 'counter', name, help, ...options } as const
}

function gauge(name: string, help: string, labels: readonly string[] = [], workers?: Metric['workers']) {
  return { type: 'gauge', name, help, labels, workers } as const
}

function histogram(name: string, help: string, bounds: readonly number[], options: Options = {}) {
  return { type: 'histogram', name, help, bounds, ...options } as const
}

export const METRICS = {
  requests: counter(
    'powgate_requests_total',
    'Answers, by endpoint, status and outcome: ok, failed (a verification that did not pass), or why it was refused.',
    { labels: ['endpoint', 'status', 'outcome'], fromStart: [...TRAFFIC.keys(), ...ALARMING], history: true },
  ),
  siteRequests: counter('powgate_site_requests_total', 'Answers for each site of POWGATE_METRICS_SITES.', {
    labels: ['site', 'endpoint', 'outcome'],
  }),
  requestSeconds: histogram(
    'powgate_request_duration_seconds',
    'Time from the last byte of a request to its answer.',
    LATENCY_BOUNDS_SECONDS,
    { ...BY_ENDPOINT, scale: MICROSECONDS },
  ),
  inFlight: gauge('powgate_requests_under_way', 'Requests that are not answered yet.', [], 'sum'),
  aborted: counter(
    'powgate_requests_aborted_total',
    'Requests whose client went away before the answer, or sent too slowly.',
    BY_ENDPOINT,
  ),
  faults: counter(
    'powgate_faults_total',
    'Faults of powgate itself; they are in the log, up to 60 a minute and worker.',
    BY_ENDPOINT,
  ),
  limited: counter(
    'powgate_rate_limited_total',
    'Requests refused by a limit, by the limit that was reached; junk has limits of its own.',
    { labels: ['endpoint', 'policy'], fromStart: LIMITS, history: true },
  ),
  proxyUntrusted: gauge(
    'powgate_proxy_untrusted',
    'Whether nearly all visitors seem to come from one private or loopback address (1 or 0): a proxy that POWGATE_TRUSTED_PROXIES does not name.',
    ['worker'],
  ),
  connections: gauge('powgate_connections', 'Open connections of clients.', ['worker']),
  connectionsMax: gauge('powgate_connections_max', 'Most connections of a worker; near it some are closed.', [
    'worker',
  ]),
  connectionsRefused: counter(
    'powgate_connections_refused_total',
    'Connections that were closed because the worker had too many.',
  ),
  difficulty: histogram(
    'powgate_challenge_difficulty',
    'Difficulty of issued challenges, in bits; those of two puzzles do not compare.',
    [16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28],
    { labels: ['puzzle'], fromStart: PUZZLES, history: true },
  ),
  raisedChallenges: counter(
    'powgate_raised_challenges_total',
    'Challenges that an operator made harder for a time (site raise).',
  ),
  solvingTimes: counter(
    'powgate_solving_times_total',
    'Solutions at the base of sites with a solving time, by whether they came within it, as clients claim.',
    { labels: ['in_time'], fromStart: ['yes', 'no'] },
  ),
  scores: histogram(
    'powgate_verification_score',
    'Scores of verifications that got one; they are hundredths, so le="0.49" is those below 0.5.',
    [0.09, 0.19, 0.29, 0.39, 0.49, 0.59, 0.69, 0.79, 0.89, 0.99],
    { scale: HUNDREDTHS, history: true },
  ),
  reasons: counter(
    'powgate_score_reasons_total',
    'Verifications that failed or lost score for this reason; one may have several.',
    { labels: ['reason'], fromStart: Object.keys(JUDGEMENT_WORDS), history: true },
  ),
  storeUp: gauge(
    'powgate_store_up',
    'Whether the whole store, each part of a Redis Cluster, answers every worker (1) or not (0).',
    [],
    'min',
  ),
  storeDown: gauge(
    'powgate_store_down',
    'Workers that the store, or a part of a Redis Cluster, does not answer, by cause; 1 while a start waits for the store.',
    ['cause'],
    'sum',
  ),
  storeOutages: counter(
    'powgate_store_outages_total',
    'Times that a worker lost the store; each worker counts its own.',
    { history: true },
  ),
  storeEpochs: counter(
    'powgate_store_epochs_total',
    'Times that a worker saw a new epoch of a shard of Redis, whose memory may be lost; each worker counts its own.',
  ),
  sitesLost: gauge(
    'powgate_sites_lost',
    'Sites and API keys that the store has lost, or has an older copy of, and this service remembers.',
  ),
  redeemLimitUsed: gauge(
    'powgate_redemption_limit_used_ratio',
    'The largest share of a redemption limit that a backend with a valid API key used within a minute, the demo apart, over all hosts if they get as many as this one; above 1, redemptions are then refused.',
  ),
  hostsDiffer: gauge(
    'powgate_hosts_differ',
    'Differences between this host and the others of its store, for which each refuses what the others issue.',
  ),
  evictedKeys: gauge(
    'powgate_store_evicted_keys',
    'Keys that Redis has evicted since it started, as each worker found it within the last minute. It must be 0.',
    ['worker'],
  ),
  clockOffset: gauge(
    'powgate_clock_offset_seconds',
    "How far the host's clock is ahead of the store's, as each worker found it within the last minute; 0 with the embedded store.",
    ['worker'],
  ),
  storeSeconds: histogram(
    'powgate_store_call_duration_seconds',
    'Time from the first operation of a call to the store to its reply, or until it was given up.',
    LATENCY_BOUNDS_SECONDS,
    { scale: MICROSECONDS, history: true },
  ),
  // A call to Redis has at most 128 operations.
  storeBatch: histogram(
    'powgate_store_batch_operations',
    'Operations that went to the store in one call.',
    [1, 2, 4, 8, 16, 32, 64, 128],
  ),
  workers: gauge('powgate_workers', 'Worker processes that run and have reported.'),
  restarts: counter(
    'powgate_worker_restarts_total',
    'Workers that were replaced: they ended by themselves (crash), hung and were killed (hang), or a SIGHUP replaced them (roll); and store processes that ended or hung (store).',
    { labels: ['cause'], fromStart: ['crash', 'hang', 'roll', 'store'], history: true },
  ),
  lag: gauge(
    'powgate_event_loop_lag_seconds',
    'How much later than asked a worker ran its timers over the last 10 to 20 seconds: mean, p99 and max.',
    ['worker', 'stat'],
  ),
  signingKey: gauge('powgate_signing_key_info', 'Id of the key that signs challenges and tokens; always 1.', [
    'id',
  ]),
  reloadDone: gauge(
    'powgate_config_last_reload_successful',
    'Whether the last SIGHUP renewed all workers (1 or 0).',
  ),
  reloadedAt: gauge(
    'powgate_config_last_reload_success_timestamp_seconds',
    'When settings last took effect.',
  ),
  cpu: counter('process_cpu_seconds_total', 'Processor time, user and system, of all processes together.', {
    scale: MICROSECONDS,
  }),
  startedAt: gauge('process_start_time_seconds', 'When the primary started, in Unix time.'),
  openFiles: gauge('process_open_fds', 'Open files of each process, connections among them.', ['process']),
  openFilesMax: gauge('process_max_fds', 'Files that each process may open.', ['process']),
  residentBytes: gauge('process_resident_memory_bytes', 'Resident memory of each process.', ['process']),
  heapBytes: gauge('nodejs_heap_size_used_bytes', 'JavaScript heap in use, of each process.', ['process']),
  logLinesLost: counter(
    'powgate_log_lines_lost_total',
    'Lines of the log that could not be written: its disk is full, or nobody reads its pipe.',
    { history: true },
  ),
  build: gauge('powgate_build_info', 'Versions of powgate and Node.js of each process; always 1.', [
    'process',
    'version',
    'node',
  ]),
  serverBuild: gauge(
    'powgate_server_build_info',
    'The builds of uWebSockets.js in use: package, and SHA-256 of the binary; always 1.',
    ['package', 'version', 'sha256', 'known'],
  ),
} as const satisfies Readonly<Record<string, Metric>>

export type MetricKey = keyof typeof METRICS
/** An argument of this type does not compile with a misspelled key. */
export type FlatName = MetricKey | `${MetricKey} ${string}`

/** The dashboard shows these for each site. */
export const SITE_COUNTED_KEYS = ['requests', 'difficulty', 'scores', 'reasons'] as const
export type SiteCountedKey = (typeof SITE_COUNTED_KEYS)[number]

export type CountedKey = {
  [Key in MetricKey]: (typeof METRICS)[Key]['type'] extends 'gauge' ? never : Key
}[MetricKey]
export const COUNTED_KEYS = (Object.keys(METRICS) as MetricKey[]).filter(
  (key): key is CountedKey => METRICS[key].type !== 'gauge',
)

/** The number of sites with counts of their own; all others share the key ''. */
export const SITES_MAX = 1000

/** METRICS, for keys that another process sent. */
export const ROWS: ReadonlyMap<string, Metric> = new Map(Object.entries(METRICS))

export function metricOf(flatName: string): Metric | undefined {
  return ROWS.get(keyOf(flatName))
}

export function keyOf(flatName: string): string {
  const end = flatName.indexOf(' ')
  return end < 0 ? flatName : flatName.slice(0, end)
}

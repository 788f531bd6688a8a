/**
 * The totals in Prometheus' format, through prom-client. Every label's values come from a closed list, which bounds the
 * number of series. For that reason no label holds site keys (the dashboard shows sites).
 */

import { ENDPOINT_NAMES, ENDPOINTS } from '../domain/endpoint.ts'
import { type JudgementReason, SCORE_WEIGHTS, type ScoreReason } from '../domain/score.ts'
import { openFilesOf } from '../http/open-files.ts'
import { type Histogram, RESTART_CAUSES, type Restarts, type StatsSnapshot } from './snapshot.ts'
import type { WorkerStats } from './totals.ts'

interface ExpositionInput {
  /** The sum over all workers. */
  readonly total: StatsSnapshot
  readonly workers: readonly WorkerStats[]
  readonly restarts: Restarts
  readonly primary: {
    readonly pid: number
    readonly residentBytes: number
    readonly heapBytes: number
    readonly cpuMicroseconds: number
    readonly startedAtSeconds: number
  }
  /** undefined if the worker has ended. */
  pidOf(worker: string): number | undefined
  readonly settings: SettingsInUse | undefined
  readonly build: { readonly version: string; readonly node: string }
}

/** Times are Unix time. */
export interface SettingsInUse {
  /** Of the key that signs. */
  readonly keyId: number
  /** Whether these settings are the last that were requested, by the start or by a SIGHUP. */
  readonly isLastReloadDone: boolean
  readonly reloadedAtSeconds: number
}

/** Prometheus' text format, which prom-client writes. */
export const CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8'

interface Sample {
  readonly labels: Readonly<Record<string, string | number>>
  readonly value: number
  /** The sample's name, if it differs from the metric's. */
  readonly metricName?: string
}

/** As `getMetricsAsJSON` of prom-client returns it. */
interface Metric {
  readonly name: string
  readonly help: string
  readonly type: 'counter' | 'gauge' | 'histogram'
  readonly values: readonly Sample[]
  readonly aggregator: 'sum'
}

export async function exposition(input: ExpositionInput): Promise<string> {
  // Imported at the first request, for it takes 80 ms of a busy processor and 13 MB. Workers load this file too, and need
  // none of it.
  const { AggregatorRegistry } = await import('prom-client')
  const { total } = input
  const metrics = [...serviceMetrics(input), ...requestMetrics(total), ...connectionMetrics(input)]
  metrics.push(...storeMetrics(total), ...judgementMetrics(total), ...shadowMetrics(total))
  metrics.push(...settingsMetrics(input), ...(await processMetrics(input)))
  const present = metrics.filter(({ values }) => values.length > 0)
  return AggregatorRegistry.aggregate<typeof CONTENT_TYPE>([present]).metrics()
}

function serviceMetrics({ build, workers, restarts }: ExpositionInput): Metric[] {
  return [
    gauge('powgate_build_info', 'Version of powgate and of Node.js; always 1.', [
      { labels: { version: build.version, node: build.node }, value: 1 },
    ]),
    gauge('powgate_workers', 'Worker processes that run and have reported.', workers.length),
    counter(
      'powgate_worker_restarts_total',
      'Workers that were replaced: they ended by themselves (crash), hung and were killed (hang), or a SIGHUP replaced them (roll).',
      RESTART_CAUSES.map(cause => ({ labels: { cause }, value: restarts[cause] })),
    ),
  ]
}

const ALWAYS_THERE = ENDPOINT_NAMES.flatMap(name =>
  Object.keys(ENDPOINTS[name].counts).map(outcome => `${name} 200 ${outcome}`),
)

function requestMetrics({ answers, latencies, aborted, faults, limited, gauges }: StatsSnapshot): Metric[] {
  const byEndpoint = (counts: Readonly<Record<string, number>>) => labelled(['endpoint'], counts)
  return [
    counter(
      'powgate_requests_total',
      'Answers, by endpoint, status and outcome: ok, failed (a verification that did not pass), or why it was refused.',
      labelled(['endpoint', 'status', 'outcome'], { ...zeros(ALWAYS_THERE), ...answers }),
    ),
    histogram(
      'powgate_request_duration_seconds',
      'Time from the headers of a request to its answer.',
      Object.entries(latencies).map(([endpoint, counts]) => [{ endpoint }, counts]),
    ),
    gauge('powgate_requests_under_way', 'Requests that are not answered yet.', gauges.underWay),
    counter(
      'powgate_requests_aborted_total',
      'Requests whose client went away before the answer.',
      byEndpoint(aborted),
    ),
    counter(
      'powgate_faults_total',
      'Faults of powgate itself; they are in the log, up to 60 a minute and worker.',
      byEndpoint(faults),
    ),
    counter(
      'powgate_rate_limited_total',
      'Requests refused by a limit, by the limit that was reached.',
      labelled(['endpoint', 'policy'], { ...zeros(LIMITS), ...limited }),
    ),
  ]
}

function connectionMetrics({ workers, total }: ExpositionInput): Metric[] {
  const ofWorkers = (field: 'connections' | 'connectionsMax') =>
    workers.map(({ number, snapshot }) => ({ labels: { worker: number }, value: snapshot.gauges[field] }))
  return [
    gauge('powgate_connections', 'Open connections of clients.', ofWorkers('connections')),
    gauge(
      'powgate_connections_max',
      'Connections that a worker takes; new ones above that are closed.',
      ofWorkers('connectionsMax'),
    ),
    counter(
      'powgate_connections_refused_total',
      'Connections that were closed for being one too many.',
      total.connectionsRefused,
    ),
  ]
}

const LIMITS = ENDPOINT_NAMES.flatMap(name => ENDPOINTS[name].limits.map(({ policy }) => `${name} ${policy}`))

function storeMetrics({ storeLatency, storeBatch, storeOutages, gauges }: StatsSnapshot): Metric[] {
  return [
    gauge('powgate_store_up', 'Whether the store answers every worker (1) or not (0).', gauges.storeUp),
    counter(
      'powgate_store_outages_total',
      'Times that a worker lost the store; each worker counts its own.',
      storeOutages,
    ),
    histogram(
      'powgate_store_call_duration_seconds',
      'Time from the first operation of a call to the store to its reply, or until it was given up.',
      [[{}, storeLatency]],
    ),
    histogram('powgate_store_batch_operations', 'Operations that went to the store in one call.', [
      [{}, storeBatch],
    ]),
  ]
}

const [BITS_MIN, BITS_MAX] = [16, 28]
/** Scores are hundredths, so these are the highest scores below each tenth. */
const SCORE_BOUNDS = [0.09, 0.19, 0.29, 0.39, 0.49, 0.59, 0.69, 0.79, 0.89, 0.99]

const FAILURES: Record<Exclude<JudgementReason, ScoreReason>, 0> = {
  'proof-wrong': 0,
  'ip-blocked': 0,
  'ip-not-allowed': 0,
  'test-key': 0,
}
const REASONS = Object.keys({ ...SCORE_WEIGHTS, ...FAILURES })

function shadowMetrics({ shadowChallenges, shadowBits }: StatsSnapshot): Metric[] {
  return [
    counter(
      'powgate_shadow_challenges_total',
      'Challenges that the shadow policy of their site would have made harder, easier or the same.',
      labelled(['verdict'], shadowChallenges),
    ),
    counter(
      'powgate_shadow_difficulty_total',
      'Bits by which shadow policies would have made challenges harder or easier, all together.',
      labelled(['verdict'], shadowBits),
    ),
  ]
}

function judgementMetrics({ difficulties, scores, scoreSum, reasons }: StatsSnapshot): Metric[] {
  return [
    histogram('powgate_challenge_difficulty', 'Difficulty of issued challenges, in bits.', [
      [{}, difficultyHistogram(difficulties)],
    ]),
    histogram(
      'powgate_verification_score',
      'Scores of verifications that got one; they are hundredths, so le="0.49" are those below 0.5.',
      [[{}, { bounds: SCORE_BOUNDS, counts: scores, sum: scoreSum }]],
    ),
    counter(
      'powgate_score_reasons_total',
      'Verifications that failed or lost score for this reason; one may have several.',
      labelled(['reason'], { ...zeros(REASONS), ...reasons }),
    ),
  ]
}

function settingsMetrics({ settings }: ExpositionInput): Metric[] {
  if (settings === undefined) return []
  const { keyId, isLastReloadDone, reloadedAtSeconds } = settings
  return [
    gauge('powgate_signing_key_info', 'Id of the key that signs challenges and tokens; always 1.', [
      { labels: { id: keyId }, value: 1 },
    ]),
    gauge(
      'powgate_config_last_reload_successful',
      'Whether the last SIGHUP renewed all workers (1 or 0).',
      isLastReloadDone ? 1 : 0,
    ),
    gauge(
      'powgate_config_last_reload_success_timestamp_seconds',
      'When settings last took effect.',
      reloadedAtSeconds,
    ),
  ]
}

async function processMetrics({ workers, primary, pidOf, total }: ExpositionInput): Promise<Metric[]> {
  const processes = [
    { labels: { process: 'primary' }, ...primary },
    ...workers.map(({ worker, number, snapshot }) => ({
      labels: { process: `worker-${number}` },
      pid: pidOf(worker),
      ...snapshot.gauges,
    })),
  ]
  const files = await Promise.all(processes.map(({ pid }) => openFilesOf(pid)))
  const ofFiles = (field: 'open' | 'max') =>
    processes.flatMap(({ labels }, index) => (files[index] ? [{ labels, value: files[index][field] }] : []))
  const lags = workers.flatMap(({ number, snapshot }) =>
    Object.entries(snapshot.gauges.eventLoopLagSeconds).map(([stat, value]) => ({
      labels: { worker: number, stat },
      value,
    })),
  )
  return [
    gauge(
      'powgate_event_loop_lag_seconds',
      'How much later than asked a worker ran its timers over the last 10 to 20 seconds: mean, p99 and max.',
      lags,
    ),
    counter(
      'process_cpu_seconds_total',
      'Processor time, user and system, of all processes together.',
      (total.cpuMicroseconds + primary.cpuMicroseconds) / 1e6,
    ),
    gauge('process_start_time_seconds', 'When the primary started, in Unix time.', primary.startedAtSeconds),
    gauge('process_open_fds', 'Open files of each process, connections among them.', ofFiles('open')),
    gauge('process_max_fds', 'Files that each process may open.', ofFiles('max')),
    gauge(
      'process_resident_memory_bytes',
      'Resident memory of each process.',
      processes.map(({ labels, residentBytes }) => ({ labels, value: residentBytes })),
    ),
    gauge(
      'nodejs_heap_size_used_bytes',
      'JavaScript heap in use, of each process.',
      processes.map(({ labels, heapBytes }) => ({ labels, value: heapBytes })),
    ),
  ]
}

function difficultyHistogram(difficulties: Readonly<Record<string, number>>): Histogram {
  const bounds = Array.from({ length: BITS_MAX - BITS_MIN + 1 }, (_, index) => BITS_MIN + index)
  const counts = [...bounds, Number.POSITIVE_INFINITY].map(() => 0)
  let sum = 0
  for (const [text, count] of Object.entries(difficulties)) {
    const bits = Number(text)
    const bucket = bounds.findIndex(bound => bits <= bound)
    counts[bucket < 0 ? bounds.length : bucket]! += count
    sum += bits * count
  }
  return { bounds, counts, sum }
}

function gauge(name: string, help: string, values: Values): Metric {
  return { name, help, type: 'gauge', values: samplesOf(values), aggregator: 'sum' }
}

function counter(name: string, help: string, values: Values): Metric {
  return { name, help, type: 'counter', values: samplesOf(values), aggregator: 'sum' }
}

/** A number is the value of a metric without labels. */
type Values = number | readonly Sample[]

function samplesOf(values: Values): readonly Sample[] {
  return typeof values === 'number' ? [{ labels: {}, value: values }] : values
}

function histogram(
  name: string,
  help: string,
  series: readonly (readonly [labels: Sample['labels'], histogram: Histogram])[],
): Metric {
  const values = series.flatMap(([labels, { bounds, counts, sum }]) => {
    let below = 0
    const buckets = counts.map((count, index) => {
      below += count
      return {
        labels: { ...labels, le: bounds[index] ?? '+Inf' },
        value: below,
        metricName: `${name}_bucket`,
      }
    })
    return [
      ...buckets,
      { labels, value: sum, metricName: `${name}_sum` },
      { labels, value: below, metricName: `${name}_count` },
    ]
  })
  return { name, help, type: 'histogram', values, aggregator: 'sum' }
}

/** Names come from the code of powgate, perhaps of another version that a worker runs. */
const NAME = /^[A-Za-z0-9-]{1,40}$/

/** Samples from counts by names; a name holds the values of all labels, separated by spaces. */
function labelled(labels: readonly string[], counts: Readonly<Record<string, number>>): Sample[] {
  return Object.entries(counts).flatMap(([key, value]) => {
    const names = key.split(' ')
    if (names.length !== labels.length || !names.every(name => NAME.test(name))) return []
    return [{ labels: Object.fromEntries(labels.map((label, index) => [label, names[index]!])), value }]
  })
}

function zeros(names: readonly string[]): Record<string, number> {
  return Object.fromEntries(names.map(name => [name, 0]))
}

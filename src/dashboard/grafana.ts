/** The dashboard for Grafana 10 and newer: a table of its panels. */

import { ENDPOINT_NAMES, ENDPOINTS } from '../domain/endpoint.ts'
import {
  curves,
  dashboardOf,
  heatmap,
  type Panel,
  type Part,
  type Queries,
  ranks,
  STACKED,
  stat,
  table,
} from './grafana-form.ts'

const REQUESTS = 'powgate_requests_total'
const DURATION = 'powgate_request_duration_seconds'
const DIFFICULTY = 'powgate_challenge_difficulty'
const SCORE = 'powgate_verification_score'
const BATCH = 'powgate_store_batch_operations'
const RESTARTS = 'powgate_worker_restarts_total'
const SHADOW_CHALLENGES = 'powgate_shadow_challenges_total'

const CHALLENGED = 'endpoint="challenge",status="200"'
const VERIFIED = 'endpoint="verify",status="200"'
const REDEEMING = `endpoint=~"${ENDPOINT_NAMES.filter(name => ENDPOINTS[name].counts.ok === 'redeemed').join('|')}"`
const REFUSED = 'outcome!~"ok|failed"'
const PROCESSES = 'process=~"primary|worker-.*"'
const OF_SHADOWED = ` / on () group_left () ${rate(SHADOW_CHALLENGES)}`

/** Panels of endpoints have ids from here on. */
const LATENCY_ID = 100

/** Most urgent first. An id, the first argument of a panel, stays with the panel: links name it. */
const PARTS: readonly Part[] = [
  part('Health', [
    stat(2, 'Store', '1: the store answers every worker of every host.', 'short', {
      query: `min(${of('powgate_store_up')})`,
      colors: ['red', 'green'],
      texts: ['Away', 'Up'],
      decimals: 0,
      isPlotted: false,
    }),
    stat(3, 'Workers', 'Worker processes that run and have reported.', 'short', {
      query: sum(of('powgate_workers')),
      colors: ['red', 'green'],
      decimals: 0,
    }),
    stat(
      4,
      'Workers ended or hung',
      "Within the dashboard's range; rolling restarts are not counted.",
      'short',
      {
        query: increase(RESTARTS, 'cause!="roll"', '', '[$__range]'),
        colors: ['green', 'orange'],
        decimals: 0,
        isPlotted: false,
      },
    ),
    stat(5, 'Challenges', 'Issued per second.', 'reqps', { query: rate(REQUESTS, CHALLENGED) }),
    stat(6, 'Verifications', 'Judged per second.', 'reqps', { query: rate(REQUESTS, VERIFIED) }),
    stat(7, 'Redemptions', 'Tokens redeemed per second.', 'reqps', {
      query: rate(REQUESTS, `${REDEEMING},status="200",outcome="ok"`),
    }),
    stat(8, 'Passed', 'Share of verifications that passed.', 'percentunit', {
      query: `${rate(REQUESTS, `${VERIFIED},outcome="ok"`)} / ${rate(REQUESTS, VERIFIED)}`,
      decimals: 1,
    }),
    stat(9, '/verify p99', '99 % of the answers came within this time.', 's', {
      query: quantile(0.99, DURATION, 'endpoint="verify"'),
    }),
  ]),
  part('Traffic', [
    curves(11, 'Requests', 'Successful answers per second, and all refusals.', 'reqps', {
      challenges: rate(REQUESTS, CHALLENGED),
      verifications: rate(REQUESTS, VERIFIED),
      redemptions: rate(REQUESTS, `${REDEEMING},status="200",outcome="ok"`),
      refused: rate(REQUESTS, REFUSED),
    }),
    curves(
      12,
      'Verifications',
      'Passed and failed, one upon the other.',
      'reqps',
      {
        passed: rate(REQUESTS, `${VERIFIED},outcome="ok"`),
        failed: rate(REQUESTS, `${VERIFIED},outcome="failed"`),
      },
      STACKED,
    ),
    curves(
      42,
      'Redemptions that succeed',
      'Share of the calls of backends that redeemed a token; the others are told by Refusals.',
      'percentunit',
      { succeed: `${rate(REQUESTS, `${REDEEMING},outcome="ok"`)} / ${rate(REQUESTS, REDEEMING)}` },
      { min: 0, max: 1 },
    ),
  ]),
  part(
    'Why not',
    [
      curves(
        14,
        'Refusals by reason',
        'Answers other than 200, by the reason that the client is not told in full.',
        'reqps',
        { '{{outcome}}': rate(REQUESTS, REFUSED, 'outcome') },
        STACKED,
      ),
      curves(
        15,
        'Refusals by endpoint and status',
        '',
        'reqps',
        {
          '{{endpoint}} {{status}}': rate(REQUESTS, REFUSED, 'endpoint, status'),
        },
        STACKED,
      ),
    ],
    [
      ranks(16, 'Refused within the range', 'How often, by reason.', mostOften('outcome', REQUESTS, REFUSED)),
      ranks(
        17,
        'Why verifications failed or lost score',
        'Within the range; one verification can have several reasons.',
        mostOften('reason', 'powgate_score_reasons_total'),
      ),
      curves(18, 'Limits hit', 'Requests refused with 429, by the limit that was reached.', 'reqps', {
        '/{{endpoint}} per {{policy}}': rate('powgate_rate_limited_total', '', 'endpoint, policy'),
      }),
    ],
  ),
  part('Difficulty and scores', [
    curves(
      20,
      'Difficulty',
      'Bits of issued challenges; each one doubles the work. The highest is that of the costliest 1 %.',
      'short',
      { mean: mean(DIFFICULTY), highest: quantile(0.99, DIFFICULTY) },
      { min: 16 },
    ),
    curves(
      21,
      'Mean score',
      'Of verifications that got one: 1 is a person, 0 a bot.',
      'short',
      { mean: mean(SCORE) },
      { min: 0, max: 1 },
    ),
    heatmap(
      22,
      'Scores over time',
      'How many verifications got which score; the upper bound of each bucket is shown.',
      { '{{le}}': increase(`${SCORE}_bucket`, '', 'le') },
    ),
    curves(50, 'Raised by hand', 'Challenges that site raise made harder for a time.', 'reqps', {
      raised: rate('powgate_raised_challenges_total'),
    }),
    curves(
      48,
      'Shadow policies',
      'How many bits policies on trial would have asked for more, or less, a challenge of their sites; and which share they would have changed.',
      'short',
      {
        'bits {{verdict}}': rate('powgate_shadow_difficulty_total', '', 'verdict') + OF_SHADOWED,
        'share {{verdict}}': rate(SHADOW_CHALLENGES, 'verdict!="same"', 'verdict') + OF_SHADOWED,
      },
      {},
    ),
  ]),
  part(
    'Latency',
    ENDPOINT_NAMES.map((endpoint, index) =>
      curves(
        LATENCY_ID + index,
        `Latency of /${endpoint}`,
        "From a request's headers to its answer.",
        's',
        percentiles(DURATION, `endpoint="${endpoint}"`),
      ),
    ),
  ),
  part('Store', [
    curves(
      28,
      'Call latency',
      'From the first operation of a call to its reply.',
      's',
      percentiles('powgate_store_call_duration_seconds'),
    ),
    curves(
      29,
      'Operations in a call',
      'How many requests of one event-loop turn went out together.',
      'short',
      { mean: mean(BATCH), p99: quantile(0.99, BATCH) },
    ),
    curves(
      30,
      'Store up, how often it was lost, new epochs',
      'Up: 1 if it answers every worker. Each worker counts its own outages and the new epochs that it saw.',
      'short',
      {
        'up {{instance}}': `min by (instance) (${of('powgate_store_up')})`,
        'workers without it, {{cause}}': sum(of('powgate_store_down'), 'cause'),
        'lost {{instance}}': increase('powgate_store_outages_total', '', 'instance'),
        'new epochs {{instance}}': increase('powgate_store_epochs_total', '', 'instance'),
      },
    ),
    curves(
      38,
      'Sites and API keys that the store has lost',
      'Workers serve them from memory; a new worker refuses them. It must be 0.',
      'short',
      { '{{instance}}': of('powgate_sites_lost') },
    ),
    curves(52, 'Evicted keys', 'Each eviction refuses what was issued before. It must be 0.', 'short', {
      '{{instance}}': `max by (instance) (${of('powgate_store_evicted_keys')})`,
    }),
    curves(
      51,
      'Solving times that drift',
      'Sites whose estimate of devices moved as far as it may in a day: other visitors, or false claims.',
      'short',
      { '{{instance}}': `max by (instance) (${of('powgate_solve_time_estimates_at_bound')})` },
    ),
    curves(
      49,
      'Clock',
      "How far each host's clock is ahead of Redis'. Above 5 s hosts refuse each other's challenges and tokens.",
      's',
      { '{{instance}}': `max by (instance) (${of('powgate_clock_offset_seconds')})` },
    ),
  ]),
  part(
    'Workers',
    [
      curves(
        32,
        'Event loop lag',
        'How late workers run their timers, 99th percentile of the last seconds.',
        's',
        { '{{instance}} worker {{worker}}': of('powgate_event_loop_lag_seconds', 'stat="p99"') },
      ),
      curves(33, 'Resident memory', '', 'bytes', {
        '{{instance}} {{process}}': of('process_resident_memory_bytes', PROCESSES),
      }),
      curves(34, 'JavaScript heap in use', '', 'bytes', {
        '{{instance}} {{process}}': of('nodejs_heap_size_used_bytes', PROCESSES),
      }),
    ],
    [
      curves(35, 'Requests under way', 'Not answered yet.', 'short', {
        '{{instance}}': sum(of('powgate_requests_under_way'), 'instance'),
      }),
      curves(
        36,
        'Faults and clients that left',
        "Faults are powgate's own, and in the log; clients left before their answer.",
        'reqps',
        { faults: rate('powgate_faults_total'), 'clients left': rate('powgate_requests_aborted_total') },
      ),
      curves(
        37,
        'Workers replaced',
        'crash: ended by itself; hang: killed because it hung; roll: on purpose.',
        'short',
        { '{{cause}}': increase(RESTARTS, '', 'cause') },
      ),
      curves(60, 'Log lines lost', 'A full disk, or a pipe that nobody reads.', 'short', {
        '{{instance}}': increase('powgate_log_lines_lost_total', '', 'instance'),
      }),
    ],
    [
      curves(40, 'Connections', 'Open connections of clients, and how many each worker takes.', 'short', {
        '{{instance}} worker {{worker}}': of('powgate_connections'),
        '{{instance}}: a worker takes': `max by (instance) (${of('powgate_connections_max')})`,
      }),
      curves(41, 'Connections refused', 'Closed for being one more than a worker takes.', 'reqps', {
        '{{instance}}': rate('powgate_connections_refused_total', '', 'instance'),
      }),
      curves(43, 'Open files', 'Of those that each process may open.', 'percentunit', {
        '{{instance}} {{process}}': `${of('process_open_fds', PROCESSES)} / ${of('process_max_fds', PROCESSES)}`,
      }),
    ],
    [
      curves(44, 'Processor time', 'Cores in use, by all processes of a host.', 'short', {
        '{{instance}}': rate('process_cpu_seconds_total', '', 'instance'),
      }),
      curves(
        45,
        'Age of the processes and of the settings',
        'Since the primary started, and since a start or a SIGHUP last took effect.',
        's',
        {
          '{{instance}} started': `time() - ${of('process_start_time_seconds')}`,
          '{{instance}} settings': `time() - ${of('powgate_config_last_reload_success_timestamp_seconds')}`,
        },
      ),
      curves(
        46,
        'Last SIGHUP',
        '1: all workers are new. 0: a setting is wrong or a worker cannot start; the log says which.',
        'short',
        { '{{instance}}': of('powgate_config_last_reload_successful') },
      ),
    ],
  ),
  part('Build', [
    table(
      39,
      'Versions',
      'Of powgate and Node.js on each host.',
      sum(of('powgate_build_info'), 'instance, version, node'),
    ),
    table(
      53,
      'HTTP server',
      'The build of uWebSockets.js on each host, and whether the tests ran on it.',
      sum(of('powgate_server_build_info'), 'instance, package, version, sha256, known'),
    ),
    table(
      47,
      'Signing keys',
      'Of each host; they are to be the same but while a secret is rotated.',
      sum(of('powgate_signing_key_info'), 'instance, id'),
    ),
  ]),
]

function part(title: string, ...lines: Panel[][]): Part {
  return { title, lines }
}

/** A metric of the chosen hosts. */
function of(metric: string, labels = ''): string {
  return `${metric}{instance=~"$instance"${labels && `,${labels}`}}`
}

function sum(expression: string, by = ''): string {
  return `sum ${by && `by (${by}) `}(${expression})`
}

function rate(counter: string, labels = '', by = ''): string {
  return sum(`rate(${of(counter, labels)}[$__rate_interval])`, by)
}

function increase(counter: string, labels = '', by = '', within = '[$__rate_interval]'): string {
  return sum(`increase(${of(counter, labels)}${within})`, by)
}

/** Counts within the dashboard's range by a label, the greatest first. */
function mostOften(label: string, counter: string, labels = ''): Queries {
  return { [`{{${label}}}`]: `sort_desc(${increase(counter, labels, label, '[$__range]')} > 0)` }
}

function mean(histogram: string): string {
  return `${rate(`${histogram}_sum`)} / ${rate(`${histogram}_count`)}`
}

function quantile(share: number, histogram: string, labels = ''): string {
  return `histogram_quantile(${share}, ${rate(`${histogram}_bucket`, labels, 'le')})`
}

function percentiles(histogram: string, labels = ''): Queries {
  const of = (share: number) => quantile(share, histogram, labels)
  return { p50: of(0.5), p95: of(0.95), p99: of(0.99) }
}

/** The dashboard as Grafana imports it. */
export function grafanaDashboard(): unknown {
  return dashboardOf(PARTS)
}

/**
 * Prints the dashboard for Grafana. The build writes it to dist/dashboard/grafana.json. What our own dashboard shows too has the
 * same title there; test/dashboard/grafana.test.ts checks this.
 */

import { ENDPOINT_NAMES, type EndpointName } from '../domain/endpoint.ts'
import { METRICS, type MetricKey } from '../metrics/table.ts'

/** A kind of Grafana's panels. What is not set here has Grafana's default. */
interface PanelKind {
  readonly type: string
  readonly fieldConfig: { readonly defaults: object; readonly overrides: readonly object[] }
  readonly options?: object
  /** Options of each query. By default, a query asks for a value at each step of the range. */
  readonly target?: object
}

function steps(...colors: [color: string, from: number | null][]) {
  return { mode: 'absolute', steps: colors.map(([color, value]) => ({ color, value })) }
}

const RED_BELOW_1 = { thresholds: steps(['red', null], ['green', 1]), decimals: 0 }
const UP_OR_AWAY = {
  ...RED_BELOW_1,
  mappings: [{ type: 'value', options: { 0: { text: 'Away', index: 0 }, 1: { text: 'Up', index: 1 } } }],
}

function stat(unit: string, defaults: object = {}, graphMode = 'area'): PanelKind {
  const plain = { unit, thresholds: steps(['text', null]), color: { mode: 'thresholds' }, noValue: '–' }
  const fieldConfig = { defaults: { ...plain, ...defaults }, overrides: [] }
  return { type: 'stat', fieldConfig, options: { textMode: 'value', graphMode } }
}

function graph(unit: string, defaults: object = {}): PanelKind {
  const plain = { unit, min: 0, custom: { fillOpacity: 8, showPoints: 'never' } }
  return {
    type: 'timeseries',
    fieldConfig: { defaults: { ...plain, ...defaults }, overrides: [] },
    options: {
      legend: { displayMode: 'table', placement: 'bottom', showLegend: true, calcs: ['lastNotNull', 'max'] },
      tooltip: { mode: 'multi', sort: 'desc' },
    },
  }
}

const STACKING = { fillOpacity: 25, showPoints: 'never', stacking: { mode: 'normal', group: 'A' } }
const STACKED = graph('reqps', { custom: STACKING })

const HEATMAP: PanelKind = {
  type: 'heatmap',
  fieldConfig: { defaults: { unit: 'short' }, overrides: [] },
  options: { rowsFrame: { layout: 'le' }, color: { mode: 'scheme', scheme: 'Blues' }, showValue: 'never' },
  target: { format: 'heatmap' },
}

const HIDDEN = [{ id: 'custom.hidden', value: true }]

const TABLE: PanelKind = {
  type: 'table',
  fieldConfig: {
    defaults: { unit: 'short' },
    overrides: [{ matcher: { id: 'byRegexp', options: 'Time|Value' }, properties: HIDDEN }],
  },
  target: { range: false, instant: true, format: 'table' }, // a single value, at the end of the range; a table has no legend
}

const INTERVAL = '[$__rate_interval]'
const CHOSEN = 'deployment=~"$deployment",instance=~"$instance"'

/** Endings of the series that a histogram has. */
type Part = '' | '_bucket' | '_sum' | '_count'

/** Selects the metric's series of the chosen hosts. Every program has metrics such as process_open_fds, so these name the job. */
function seriesOf(key: MetricKey, where = '', part: Part = ''): string {
  const { name } = METRICS[key]
  const job = name.startsWith('powgate_') ? '' : ',job="powgate"'
  return `${name}${part}{${CHOSEN}${job}${where === '' ? '' : `,${where}`}}`
}

// These return PromQL. `where` is label matchers and `by` label names, as PromQL writes them; '' is none.
const sum = (expr: string, by = '') => `sum ${by === '' ? '' : `by (${by}) `}(${expr})`
const maxPerHost = (key: MetricKey) => `max by (instance) (${seriesOf(key)})`
const rate = (key: MetricKey, where = '', by = '', part: Part = '') =>
  sum(`rate(${seriesOf(key, where, part)}${INTERVAL})`, by)
const increase = (key: MetricKey, by: string, part: Part = '') =>
  sum(`increase(${seriesOf(key, '', part)}${INTERVAL})`, by)
const mean = (key: MetricKey, by = '') => `${rate(key, '', by, '_sum')} / ${rate(key, '', by, '_count')}`
const quantile = (q: number, key: MetricKey, where = '', by = '') =>
  `histogram_quantile(${q}, ${rate(key, where, by === '' ? 'le' : `${by}, le`, '_bucket')})`
const percentiles = (key: MetricKey, where = '') => ({
  p50: quantile(0.5, key, where),
  p95: quantile(0.95, key, where),
  p99: quantile(0.99, key, where),
})

const REFUSED = 'outcome!~"ok|failed"'
const OF_ENDPOINTS = `endpoint=~"${ENDPOINT_NAMES.join('|')}"`
const WHERE_BACKEND = 'endpoint=~"verify-token|siteverify"'
const PER_SECOND = graph('reqps')
const UNITLESS = graph('short')
const SECONDS = graph('s')
const BYTES = graph('bytes')
const SHARE = graph('percentunit')
const UP_TO_1 = { max: 1 }

const challenges = rate('requests', 'endpoint="challenge",outcome="ok"')
const verified = rate('requests', 'endpoint="verify",outcome=~"ok|failed"')
const passed = rate('requests', 'endpoint="verify",outcome="ok"')
const failed = rate('requests', 'endpoint="verify",outcome="failed"')
const redeemed = rate('requests', `${WHERE_BACKEND},outcome="ok"`)

/** Descriptions of panels for which a metric's help says too little. */
const TEXTS = {
  redeemedShare: 'Share of the calls of backends that redeemed a token.',
  bits: 'Bits of issued challenges; each one doubles the work. Of a hundred challenges, one costs p99 or more.',
  scoreAndTime:
    'A score of 1 is a person, 0 a bot. Where a site has a target solve time, 95 % of the solutions at its base difficulty should come within it.',
  timesLost:
    'up: 1 if every shard of the store answers every worker; workers without it: how many, by what they meet. Each worker counts its own outages and the new epochs that it saw.',
  lostOrDiffering:
    'Workers serve lost sites from memory; after a restart they refuse them. Hosts that differ refuse what the others issue. Both must be 0.',
  evictions: 'Each eviction refuses what was issued before. It must be 0.',
  clocks:
    "How far each host's clock is ahead of Redis'. Above 5 s hosts refuse each other's challenges and tokens.",
  ages: 'Time since the primary process started, and since the settings were last read (start or SIGHUP).',
  signingKeys: 'The signing key of each host. All must be equal, except while a secret is rotated.',
}

const DATA_SOURCE = { type: 'prometheus', uid: '$' + '{datasource}' } // the linter forbids the whole text in quotes

/**
 * @param id must never change, because links to panels have it; a new panel gets the next above the highest below 100
 * @param about the text that describes the panel, or the metric whose help does
 * @param queries by their curves' names, in which Grafana replaces {{label}} by the label's value
 */
function panel(
  id: number,
  title: string,
  about: MetricKey | keyof typeof TEXTS,
  kind: PanelKind,
  queries: Readonly<Record<string, string>>,
): object {
  const { target, ...rest } = kind
  const targets = Object.entries(queries).map(([legendFormat, expr], index) => {
    const refId = String.fromCharCode(65 + index) // A, B, C ...
    return { refId, datasource: DATA_SOURCE, expr, legendFormat, range: true, instant: false, ...target }
  })
  const description = about in TEXTS ? TEXTS[about as keyof typeof TEXTS] : METRICS[about as MetricKey].help
  return { id, title, description, datasource: DATA_SOURCE, ...rest, targets }
}

const HEALTH = [
  panel(2, 'Store', 'storeUp', stat('short', UP_OR_AWAY, 'none'), { Store: `min(${seriesOf('storeUp')})` }),
  panel(3, 'Workers', 'workers', stat('short', RED_BELOW_1), { Workers: sum(seriesOf('workers')) }),
  panel(5, 'Challenges', 'requests', stat('reqps'), { Challenges: challenges }),
  panel(6, 'Verifications', 'requests', stat('reqps'), { Verifications: verified }),
  panel(7, 'Redemptions', 'requests', stat('reqps'), { Redemptions: redeemed }),
  panel(8, 'Passed', 'requests', stat('percentunit', { decimals: 1 }), { Passed: `${passed} / ${verified}` }),
]

const TRAFFIC = [
  panel(11, 'Requests', 'requests', PER_SECOND, {
    challenges,
    verified,
    redeemed,
    refused: rate('requests', `${OF_ENDPOINTS},${REFUSED}`),
  }),
  panel(12, 'Verifications', 'requests', STACKED, { passed, failed }),
  panel(42, 'Redemptions that succeed', 'redeemedShare', graph('percentunit', UP_TO_1), {
    succeed: `${redeemed} / ${rate('requests', WHERE_BACKEND)}`,
    '{{site}}': `${rate('siteRequests', `${WHERE_BACKEND},outcome="ok"`, 'site')} / ${rate('siteRequests', WHERE_BACKEND, 'site')}`,
  }),
]

const REASONS = [
  panel(16, 'Why requests were refused', 'requests', STACKED, {
    '{{endpoint}}: {{outcome}}': rate('requests', REFUSED, 'endpoint, outcome'),
  }),
  panel(17, 'Why verifications failed or lost score', 'reasons', PER_SECOND, {
    '{{reason}}': rate('reasons', '', 'reason'),
  }),
]

const LIMITS = [
  panel(18, 'Limits hit', 'limited', PER_SECOND, {
    '/{{endpoint}}: {{policy}}': rate('limited', '', 'endpoint, policy'),
  }),
  panel(61, 'Redemption limit in use', 'redeemLimitUsed', SHARE, {
    '{{instance}}': maxPerHost('redeemLimitUsed'),
  }),
  panel(62, 'Proxy not trusted', 'proxyUntrusted', UNITLESS, {
    '{{instance}}': maxPerHost('proxyUntrusted'),
  }),
]

const SCORES = [
  panel(20, 'Difficulty', 'bits', graph('short', { min: 16 }), {
    '{{puzzle}} mean': mean('difficulty', 'puzzle'),
    '{{puzzle}} p99': quantile(0.99, 'difficulty', '', 'puzzle'),
  }),
  panel(21, 'Mean score, share in time', 'scoreAndTime', graph('short', UP_TO_1), {
    mean: mean('scores'),
    'within the solving time': `${rate('solvingTimes', 'in_time="yes"')} / ${rate('solvingTimes')}`,
  }),
  panel(22, 'Scores', 'scores', HEATMAP, { '{{le}}': increase('scores', 'le', '_bucket') }),
  panel(50, 'Raised by hand', 'raisedChallenges', PER_SECOND, { raised: rate('raisedChallenges') }),
]

const LATENCY_IDS = { challenge: 100, verify: 101, 'verify-token': 102, siteverify: 103 }
const LATENCY = Object.entries(LATENCY_IDS satisfies Record<EndpointName, number>).map(([name, id]) => {
  const queries = percentiles('requestSeconds', `endpoint="${name}"`)
  return panel(id, `Latency of /${name}`, 'requestSeconds', SECONDS, queries)
})

const STORE = [
  panel(28, 'Call latency', 'storeSeconds', SECONDS, percentiles('storeSeconds')),
  panel(29, 'Operations per call', 'storeBatch', UNITLESS, {
    mean: mean('storeBatch'),
    p99: quantile(0.99, 'storeBatch'),
  }),
  panel(30, 'Times that a worker lost the store', 'timesLost', UNITLESS, {
    'up {{instance}}': `min by (instance) (${seriesOf('storeUp')})`,
    'workers without it, {{cause}}': sum(seriesOf('storeDown'), 'cause'),
    'lost {{instance}}': increase('storeOutages', 'instance'),
    'new epochs {{instance}}': increase('storeEpochs', 'instance'),
  }),
  panel(38, 'Lost sites and API keys, hosts that differ', 'lostOrDiffering', UNITLESS, {
    'lost, {{instance}}': seriesOf('sitesLost'),
    'differences, {{instance}}': seriesOf('hostsDiffer'),
  }),
  panel(52, 'Evicted keys', 'evictions', UNITLESS, { '{{instance}}': maxPerHost('evictedKeys') }),
  panel(49, 'Clock', 'clocks', graph('s', { min: undefined }), { '{{instance}}': maxPerHost('clockOffset') }),
]

const LOAD = [
  panel(32, 'Event loop lag', 'lag', SECONDS, {
    '{{instance}} worker {{worker}}': seriesOf('lag', 'stat="p99"'),
  }),
  panel(33, 'Resident memory', 'residentBytes', BYTES, {
    '{{instance}} {{process}}': seriesOf('residentBytes'),
  }),
  panel(34, 'JavaScript heap in use', 'heapBytes', BYTES, {
    '{{instance}} {{process}}': seriesOf('heapBytes'),
  }),
]

const FAULTS = [
  panel(35, 'Requests in flight', 'inFlight', UNITLESS, {
    '{{instance}}': sum(seriesOf('inFlight'), 'instance'),
  }),
  panel(36, 'Faults, clients gone', 'faults', PER_SECOND, {
    faults: rate('faults'),
    'clients gone': rate('aborted'),
  }),
  panel(37, 'Workers replaced', 'restarts', UNITLESS, { '{{cause}}': increase('restarts', 'cause') }),
  panel(60, 'Log lines lost', 'logLinesLost', UNITLESS, {
    '{{instance}}': increase('logLinesLost', 'instance'),
  }),
]

const CONNECTIONS = [
  panel(40, 'Connections', 'connections', UNITLESS, {
    '{{instance}} worker {{worker}}': seriesOf('connections'),
    '{{instance}}: a worker takes': maxPerHost('connectionsMax'),
  }),
  panel(41, 'Connections refused', 'connectionsRefused', PER_SECOND, {
    '{{instance}}': rate('connectionsRefused', '', 'instance'),
  }),
  panel(43, 'Open files', 'openFiles', SHARE, {
    '{{instance}} {{process}}': `${seriesOf('openFiles')} / ${seriesOf('openFilesMax')}`,
  }),
]

const PROCESSES = [
  panel(44, 'Processor time', 'cpu', UNITLESS, { '{{instance}}': rate('cpu', '', 'instance') }),
  panel(45, 'Age of the processes and of the settings', 'ages', SECONDS, {
    '{{instance}} started': `time() - ${seriesOf('startedAt')}`,
    '{{instance}} settings': `time() - ${seriesOf('reloadedAt')}`,
  }),
  panel(46, 'Last SIGHUP', 'reloadDone', UNITLESS, { '{{instance}}': seriesOf('reloadDone') }),
]

const BUILDS = [
  panel(39, 'Versions', 'build', TABLE, { '': sum(seriesOf('build'), 'instance, version, node') }),
  panel(53, 'HTTP server', 'serverBuild', TABLE, {
    '': sum(seriesOf('serverBuild'), 'instance, package, version, sha256, known'),
  }),
  panel(47, 'Signing keys', 'signingKeys', TABLE, { '': sum(seriesOf('signingKey'), 'instance, id') }),
]

/** Each heading has lines of panels below it, which share the line's width. Ids of headings, from 1000 on, must not change either. */
const SECTIONS: readonly [id: number, heading: string, ...lines: [height: number, panels: object[]][]][] = [
  [1000, 'Health', [4, HEALTH]],
  [1001, 'Traffic', [8, TRAFFIC]],
  [1002, 'Refusals and failures', [8, REASONS], [8, LIMITS]],
  [1003, 'Difficulty and scores', [8, SCORES]],
  [1004, 'Latency', [8, LATENCY]],
  [1005, 'Store', [8, STORE]],
  [1006, 'Workers', [8, LOAD], [8, FAULTS], [8, CONNECTIONS], [8, PROCESSES]],
  [1007, 'Build', [5, BUILDS]],
]

/** Columns of Grafana's grid. The number of panels in a line must divide it. */
const WIDTH = 24

function sectionsJson(): object[] {
  let y = 0
  return SECTIONS.flatMap(([id, title, ...lines]) => {
    const heading = { id, type: 'row', title, collapsed: false, panels: [] }
    const all: object[] = [{ ...heading, gridPos: { h: 1, w: WIDTH, x: 0, y: y++ } }]
    for (const [h, panels] of lines) {
      const w = WIDTH / panels.length
      all.push(...panels.map((panel, place) => ({ ...panel, gridPos: { h, w, x: w * place, y } })))
      y += h
    }
    return all
  })
}

function variable(name: string, label: string, query: string) {
  // All is a regular expression of all values, which a host without POWGATE_DEPLOYMENT has none of. Each has an instance.
  const all = { includeAll: true, ...(name === 'deployment' && { allValue: '.*' }) }
  const asked = { datasource: DATA_SOURCE, query: { query, refId: name }, definition: query }
  const current = { selected: true, text: ['All'], value: ['$__all'] }
  const choices = { refresh: 2, sort: 1 } // asked for anew when the range changes, and in alphabetical order
  return { name, label, type: 'query', ...asked, ...choices, multi: true, ...all, current }
}

const WORKERS = METRICS.workers.name
const VARIABLES = [
  { name: 'datasource', label: 'Data source', type: 'datasource', query: 'prometheus', refresh: 1 },
  variable('deployment', 'Deployment', `label_values(${WORKERS}, deployment)`),
  variable('instance', 'Instance', `label_values(${WORKERS}{deployment=~"$deployment"}, instance)`),
]

const DASHBOARD = {
  title: 'powgate',
  uid: 'powgate',
  tags: ['powgate'],
  description: 'Health, traffic, refusals, scores, latencies, store and workers of powgate.',
  schemaVersion: 39, // Grafana's, of this form of JSON
  version: 1,
  editable: true,
  graphTooltip: 1, // all graphs show the moment that is pointed at in one
  timezone: 'browser',
  refresh: '30s',
  time: { from: 'now-3h', to: 'now' },
  templating: { list: VARIABLES },
  panels: sectionsJson(),
}

console.log(JSON.stringify(DASHBOARD, null, 2))

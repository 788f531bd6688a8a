/**
 * Prints the dashboard for Grafana. The build writes it to dist/dashboard/grafana.json. What our own dashboard shows too has the
 * same title there; test/dashboard/grafana.test.ts checks this.
 */

import { ENDPOINT_NAMES } from '../../domain/endpoint.ts'
import { METRICS, type MetricKey } from '../../metrics/table.ts'
import {
  BARS,
  HEATMAP,
  lines,
  ORANGE_FROM_1,
  type PanelKind,
  RED_AT_0,
  STACKED,
  stat,
  TABLE,
  UP_OR_AWAY,
} from './panel-kinds.ts'

const INTERVAL = '[$__rate_interval]'
const RANGE = '[$__range]'

/** Selects the metric's series of the chosen hosts. */
function seriesOf(key: MetricKey, where = '', part: '' | '_bucket' | '_sum' | '_count' = ''): string {
  return `${METRICS[key].name}${part}{instance=~"$instance"${where === '' ? '' : `,${where}`}}`
}

const sum = (expr: string, by = '') => `sum ${by === '' ? '' : `by (${by}) `}(${expr})`
const max = (key: MetricKey) => `max by (instance) (${seriesOf(key)})`
const rate = (key: MetricKey, where = '', by = '') => sum(`rate(${seriesOf(key, where)}${INTERVAL})`, by)
const increase = (key: MetricKey, where = '', by = '', range = INTERVAL) =>
  sum(`increase(${seriesOf(key, where)}${range})`, by)
/** The increase within the range, the largest first, without what did not occur. */
const ranked = (key: MetricKey, where: string, by: string) =>
  `sort_desc(${increase(key, where, by, RANGE)} > 0)`

function mean(key: MetricKey, by = ''): string {
  const [total, count] = (['_sum', '_count'] as const).map(
    part => `rate(${seriesOf(key, '', part)}${INTERVAL})`,
  )
  return `${sum(total!, by)} / ${sum(count!, by)}`
}

function quantile(q: number, key: MetricKey, where = '', by = 'le'): string {
  return `histogram_quantile(${q}, ${sum(`rate(${seriesOf(key, where, '_bucket')}${INTERVAL})`, by)})`
}

const percentiles = (key: MetricKey, where = '') => ({
  p50: quantile(0.5, key, where),
  p95: quantile(0.95, key, where),
  p99: quantile(0.99, key, where),
})

const REFUSED = 'outcome!~"ok|failed"'
const BACKENDS = 'endpoint=~"verify-token|siteverify"'
const SERVICE = 'process=~"primary|worker-.*"'
const PER_SECOND = lines('reqps')
const COUNT = lines('short')
const SECONDS = lines('s')
const BYTES = lines('bytes')
const SHARE = { max: 1 }

const challenges = rate('requests', 'endpoint="challenge",status="200"')
const verified = rate('requests', 'endpoint="verify",status="200"')
const passed = rate('requests', 'endpoint="verify",status="200",outcome="ok"')
const failed = rate('requests', 'endpoint="verify",status="200",outcome="failed"')
const redeemed = rate('requests', `${BACKENDS},status="200",outcome="ok"`)

type Panel = ReturnType<typeof panel>

/**
 * @param id must never change, because links to panels have it
 * @param queries by the names of their curves, in which Grafana replaces {{label}} by the label's value
 */
function panel(id: number, title: string, kind: PanelKind, queries: Readonly<Record<string, string>>) {
  return { id, title, kind, queries }
}

const HEALTH = [
  panel(2, 'Store', stat('short', UP_OR_AWAY, 'none'), { Store: `min(${seriesOf('storeUp')})` }),
  panel(3, 'Workers', stat('short', RED_AT_0), { Workers: sum(seriesOf('workers')) }),
  panel(4, 'Workers ended or hung', stat('short', ORANGE_FROM_1, 'none'), {
    'Workers ended or hung': increase('restarts', 'cause!="roll"', '', RANGE),
  }),
  panel(5, 'Challenges', stat('reqps'), { Challenges: challenges }),
  panel(6, 'Verifications', stat('reqps'), { Verifications: verified }),
  panel(7, 'Redemptions', stat('reqps'), { Redemptions: redeemed }),
  panel(8, 'Passed', stat('percentunit', { decimals: 1 }), { Passed: `${passed} / ${verified}` }),
  panel(9, '/verify p99', stat('s'), {
    '/verify p99': quantile(0.99, 'requestSeconds', 'endpoint="verify"'),
  }),
]

const TRAFFIC = [
  panel(11, 'Requests', PER_SECOND, { challenges, verified, redeemed, refused: rate('requests', REFUSED) }),
  panel(12, 'Verifications', STACKED, { passed, failed }),
  panel(42, 'Redemptions that succeed', lines('percentunit', SHARE), {
    succeed: `${rate('requests', `${BACKENDS},outcome="ok"`)} / ${rate('requests', BACKENDS)}`,
    '{{site}}': `${rate('siteRequests', `${BACKENDS},outcome="ok"`, 'site')} / ${rate('siteRequests', BACKENDS, 'site')}`,
  }),
]

const REFUSALS = [
  panel(14, 'Refused by reason', STACKED, { '{{outcome}}': rate('requests', REFUSED, 'outcome') }),
  panel(15, 'Refused by endpoint and status', STACKED, {
    '{{endpoint}} {{status}}': rate('requests', REFUSED, 'endpoint, status'),
  }),
]

const REASONS = [
  panel(16, 'Why requests were refused', BARS, { '{{outcome}}': ranked('requests', REFUSED, 'outcome') }),
  panel(17, 'Why verifications failed or lost score', BARS, {
    '{{reason}}': ranked('reasons', '', 'reason'),
  }),
  panel(18, 'Limits hit', lines('reqps', {}, { B: 'percentunit' }), {
    '/{{endpoint}} per {{policy}}': rate('limited', '', 'endpoint, policy'),
    'redemption limit in use, {{instance}}': max('redeemLimitUsed'),
    'proxy not trusted, {{instance}}': max('proxyUntrusted'),
  }),
]

const SCORES = [
  panel(20, 'Difficulty', lines('short', { min: 16 }), {
    '{{puzzle}} mean': mean('difficulty', 'puzzle'),
    '{{puzzle}} highest': quantile(0.99, 'difficulty', '', 'puzzle, le'),
  }),
  panel(21, 'Mean score, share in time', lines('short', SHARE), {
    mean: mean('scores'),
    'within the solving time': `${rate('solvingTimes', 'in_time="yes"')} / ${rate('solvingTimes')}`,
  }),
  panel(22, 'Scores', HEATMAP, {
    '{{le}}': sum(`increase(${seriesOf('scores', '', '_bucket')}${INTERVAL})`, 'le'),
  }),
  panel(50, 'Raised by hand', PER_SECOND, { raised: rate('raisedChallenges') }),
]

const LATENCY = ENDPOINT_NAMES.map((name, index) =>
  panel(100 + index, `Latency of /${name}`, SECONDS, percentiles('requestSeconds', `endpoint="${name}"`)),
)

const STORE = [
  panel(28, 'Call latency', SECONDS, percentiles('storeSeconds')),
  panel(29, 'Operations per call', COUNT, { mean: mean('storeBatch'), p99: quantile(0.99, 'storeBatch') }),
  panel(30, 'Times that a worker lost the store', COUNT, {
    'up {{instance}}': `min by (instance) (${seriesOf('storeUp')})`,
    'workers without it, {{cause}}': sum(seriesOf('storeDown'), 'cause'),
    'lost {{instance}}': increase('storeOutages', '', 'instance'),
    'new epochs {{instance}}': increase('storeEpochs', '', 'instance'),
  }),
  panel(38, 'Lost sites and API keys, hosts that differ', COUNT, {
    'lost, {{instance}}': seriesOf('sitesLost'),
    'differences, {{instance}}': seriesOf('hostsDiffer'),
  }),
  panel(52, 'Evicted keys', COUNT, { '{{instance}}': max('evictedKeys') }),
  panel(49, 'Clock', SECONDS, { '{{instance}}': max('clockOffset') }),
]

const LOAD = [
  panel(32, 'Event loop lag', SECONDS, { '{{instance}} worker {{worker}}': seriesOf('lag', 'stat="p99"') }),
  panel(33, 'Resident memory', BYTES, { '{{instance}} {{process}}': seriesOf('residentBytes', SERVICE) }),
  panel(34, 'JavaScript heap in use', BYTES, { '{{instance}} {{process}}': seriesOf('heapBytes', SERVICE) }),
]

const FAULTS = [
  panel(35, 'Requests under way', COUNT, { '{{instance}}': sum(seriesOf('inFlight'), 'instance') }),
  panel(36, 'Faults, clients gone', PER_SECOND, { faults: rate('faults'), 'clients gone': rate('aborted') }),
  panel(37, 'Workers replaced', COUNT, { '{{cause}}': increase('restarts', '', 'cause') }),
  panel(60, 'Log lines lost', COUNT, { '{{instance}}': increase('logLinesLost', '', 'instance') }),
]

const CONNECTIONS = [
  panel(40, 'Connections', COUNT, {
    '{{instance}} worker {{worker}}': seriesOf('connections'),
    '{{instance}}: a worker takes': max('connectionsMax'),
  }),
  panel(41, 'Connections refused', PER_SECOND, {
    '{{instance}}': rate('connectionsRefused', '', 'instance'),
  }),
  panel(43, 'Open files', lines('percentunit'), {
    '{{instance}} {{process}}': `${seriesOf('openFiles', SERVICE)} / ${seriesOf('openFilesMax', SERVICE)}`,
  }),
]

const PROCESSES = [
  panel(44, 'Processor time', COUNT, { '{{instance}}': rate('cpu', '', 'instance') }),
  panel(45, 'Age of the processes and of the settings', SECONDS, {
    '{{instance}} started': `time() - ${seriesOf('startedAt')}`,
    '{{instance}} settings': `time() - ${seriesOf('reloadedAt')}`,
  }),
  panel(46, 'Last SIGHUP', COUNT, { '{{instance}}': seriesOf('reloadDone') }),
]

const BUILDS = [
  panel(39, 'Versions', TABLE, { '': sum(seriesOf('build'), 'instance, version, node') }),
  panel(53, 'HTTP server', TABLE, {
    '': sum(seriesOf('serverBuild'), 'instance, package, version, sha256, known'),
  }),
  panel(47, 'Signing keys', TABLE, { '': sum(seriesOf('signingKey'), 'instance, id') }),
]

/** Descriptions by title. A panel without one has the help of its first query's metric. */
const DESCRIPTIONS: Readonly<Record<string, string>> = {
  'Workers ended or hung': "Within the dashboard's range; rolling restarts are not counted.",
  'Redemptions that succeed': 'Share of the calls of backends that redeemed a token.',
  Difficulty:
    'Bits of issued challenges; each one doubles the work. The highest is that of the costliest 1 %.',
  'Mean score, share in time':
    'A score of 1 is a person, 0 a bot. Of the solutions at the base of a site with a solving time, 95 % should come in time.',
  'Times that a worker lost the store':
    'Up: 1 if all of it answers every worker. Each worker counts its own outages and the new epochs that it saw.',
  'Lost sites and API keys, hosts that differ':
    'Workers serve lost sites from memory; a new worker refuses them. Hosts that differ refuse what the others issue. Both must be 0.',
  'Evicted keys': 'Each eviction refuses what was issued before. It must be 0.',
  Clock:
    "How far each host's clock is ahead of Redis'. Above 5 s hosts refuse each other's challenges and tokens.",
  'Age of the processes and of the settings':
    'Since the primary started, and since a start or a SIGHUP last took effect.',
  'Signing keys': 'Of each host; they are to be the same but while a secret is rotated.',
}

/** Each heading has lines of panels below it. The panels of a line share its width. */
const SECTIONS: readonly [heading: string, ...lines: [height: number, panels: Panel[]][]][] = [
  ['Health', [4, HEALTH]],
  ['Traffic', [8, TRAFFIC]],
  ['Why not', [8, REFUSALS], [8, REASONS]],
  ['Difficulty and scores', [8, SCORES]],
  ['Latency', [8, LATENCY]],
  ['Store', [8, STORE]],
  ['Workers', [8, LOAD], [8, FAULTS], [8, CONNECTIONS], [8, PROCESSES]],
  ['Build', [5, BUILDS]],
]

const WIDTH = 24
const DATA_SOURCE = { type: 'prometheus', uid: '$' + '{datasource}' }

function sectionsJson(): object[] {
  let y = 0
  return SECTIONS.flatMap(([title, ...lines], index) => {
    const heading = { id: 1000 + index, type: 'row', title, collapsed: false, panels: [] }
    const all: object[] = [{ ...heading, gridPos: { h: 1, w: WIDTH, x: 0, y: y++ } }]
    for (const [h, panels] of lines) {
      const w = WIDTH / panels.length
      all.push(...panels.map((panel, place) => panelJson(panel, { h, w, x: w * place, y })))
      y += h
    }
    return all
  })
}

function panelJson({ id, title, kind: { target, ...kind }, queries }: Panel, gridPos: object): object {
  const targets = Object.entries(queries).map(([legendFormat, expr], index) => {
    const refId = String.fromCharCode(65 + index)
    return { refId, datasource: DATA_SOURCE, expr, legendFormat, range: true, instant: false, ...target }
  })
  const [, metric] = /(\w+?)(?:_bucket|_sum|_count)?\{/.exec(targets[0]!.expr)!
  const description = DESCRIPTIONS[title] ?? Object.values(METRICS).find(({ name }) => name === metric)!.help
  return { id, title, description, datasource: DATA_SOURCE, ...kind, targets, gridPos }
}

const INSTANCES = `label_values(${METRICS.workers.name}, instance)`
const VARIABLES = [
  { name: 'datasource', label: 'Data source', type: 'datasource', query: 'prometheus', refresh: 1 },
  {
    ...{ name: 'instance', label: 'Instance', type: 'query', datasource: DATA_SOURCE, refresh: 2, sort: 1 },
    ...{ query: { query: INSTANCES, refId: 'instances' }, definition: INSTANCES },
    ...{ multi: true, includeAll: true, allValue: '.*' },
    current: { selected: true, text: ['All'], value: ['$__all'] },
  },
]

const DASHBOARD = {
  title: 'powgate',
  uid: 'powgate',
  tags: ['powgate'],
  description: 'Health, traffic, refusals, scores, latencies, store and workers of powgate.',
  schemaVersion: 39,
  version: 1,
  editable: true,
  graphTooltip: 1,
  timezone: 'browser',
  refresh: '30s',
  time: { from: 'now-3h', to: 'now' },
  templating: { list: VARIABLES },
  panels: sectionsJson(),
}

console.log(JSON.stringify(DASHBOARD, null, 2))

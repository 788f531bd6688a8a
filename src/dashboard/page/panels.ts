/** The page's panels: each says what it shows, and `linePanel` or `rankPanel` builds it. */

import { ENDPOINT_NAMES } from '../../domain/endpoint.ts'
import { JUDGEMENT_WORDS } from '../../words/reasons.ts'
import { REFUSAL_WORDS } from '../../words/refusals.ts'
import { type Gaps, OTHER_SITES, type Percentiles, sum, type Tally } from '../data.ts'
import type { DashboardData } from '../history.ts'
import { BarList, BarPlot, Funnel } from './bars.ts'
import type { Cursor } from './cursor.ts'
import { h } from './dom.ts'
import { exact, mebibytes, milliseconds, rate, short } from './format.ts'
import { LinePlot, type LinePlotSpec } from './line-plot.ts'
import { type PagePart, Panel, type PanelSpec, stepTable } from './panel.ts'
import { limitText } from './problems.ts'

/**
 * The order is that in which someone on call needs the panels.
 *
 * @param choose called with the key of a clicked site
 */
export function makePanels(cursor: Cursor, choose: (siteKey: string) => void): PagePart[] {
  return [
    funnelPanel(),
    linePanel(TRAFFIC, cursor),
    linePanel(VERIFICATIONS, cursor),
    rankPanel(REFUSALS),
    rankPanel(REASONS),
    rankPanel(SITES, choose),
    rankPanel(LIMITS),
    scorePanel(),
    linePanel(DIFFICULTY, cursor),
    linePanel(LATENCY, cursor),
    linePanel(STORE, cursor),
    linePanel(WORKERS, cursor),
  ]
}

/** Plots over time, and their numbers as a table. */
interface LinePanelSpec extends PanelSpec {
  readonly plots: readonly LinePlotSpec[]
  /** Values by plot and curve. */
  readonly values: (data: DashboardData) => readonly (readonly Gaps[])[]
  /** The table's head; the default is the names of all curves. */
  readonly head?: readonly string[]
  /** The table's columns; the default is all values. */
  readonly columns?: (data: DashboardData) => readonly Gaps[]
  /** A number of the table. */
  readonly text: (value: number) => string
}

function linePanel(
  { plots: specs, values, columns = data => values(data).flat(), text, ...spec }: LinePanelSpec,
  cursor: Cursor,
) {
  const { head = specs.flatMap(({ curves }) => Object.keys(curves)) } = spec
  const plots = specs.map(plot => new LinePlot(plot, cursor))
  const elements = plots.map(({ element }) => element)
  const panel =
    plots.length === 1
      ? new Panel({ ...spec, time: plots[0]!.time }, elements)
      : new Panel(spec, [h('div', { class: 'row' }, ...elements)])
  return {
    element: panel.element,
    update(data, frame) {
      const ofPlots = values(data)
      for (const [index, plot] of plots.entries()) plot.update(frame, ofPlots[index]!)
      panel.update(data.site !== null, () => stepTable(data.times, head, columns(data), text))
    },
  } satisfies PagePart
}

interface RankPanelSpec extends PanelSpec {
  /** The text of a list without rows. */
  readonly empty: string
  /** Explains a name. Site names are in the data. */
  readonly explain: (name: string, data: DashboardData) => { title: string; text: string }
  readonly tallies: (data: DashboardData) => readonly Tally[]
  /** The number that shares refer to. */
  readonly whole: (data: DashboardData) => number
}

function rankPanel(
  { empty, explain, tallies, whole, ...spec }: RankPanelSpec,
  choose?: (name: string) => void,
) {
  const list = new BarList(empty, choose)
  const panel = new Panel({ ...spec, hasTable: false }, [list.element])
  return {
    element: panel.element,
    update(data, frame) {
      list.update(tallies(data), whole(data), name => explain(name, data), frame)
      panel.update(data.site !== null)
    },
  } satisfies PagePart
}

function funnelPanel(): PagePart {
  const funnel = new Funnel()
  const spec = { title: 'From challenge to redeemed token', about: 'whole range', isWide: true }
  const panel = new Panel({ ...spec, hasTable: false }, [funnel.element])
  return { element: panel.element, update: ({ traffic }) => funnel.update(traffic) }
}

const PER_SECOND = { text: (value: number) => `${rate(value)}/s`, tick: short, axisEnd: 1 }

function perSecond(counts: readonly number[], { seconds }: DashboardData): number[] {
  return counts.map((count, index) => (seconds[index]! > 0 ? count / seconds[index]! : 0))
}

const TRAFFIC: LinePanelSpec = {
  title: 'Requests',
  about: 'per second',
  plots: [
    {
      label: 'Requests',
      curves: { challenges: 'c0', verified: 'c1', redeemed: 'c2', refused: 'c3' },
      ...PER_SECOND,
    },
  ],
  values: data => [requestCounts(data).map(counts => perSecond(counts, data))],
  columns: requestCounts,
  text: exact,
}

function requestCounts({ traffic: { challenges, passed, failed, redeemed, refused } }: DashboardData) {
  const verified = passed.map((count, index) => count + failed[index]!)
  return [challenges, verified, redeemed, refused]
}

const VERIFICATIONS: LinePanelSpec = {
  title: 'Verifications',
  about: 'per second, stacked',
  plots: [
    {
      label: 'Verifications',
      curves: { passed: 'c0', failed: 'c1' },
      ...PER_SECOND,
      isStacked: true,
    },
  ],
  values: data => [[perSecond(data.traffic.passed, data), perSecond(data.traffic.failed, data)]],
  columns: ({ traffic: { passed, failed } }) => [passed, failed],
  text: exact,
}

const REFUSALS: RankPanelSpec = {
  title: 'Why requests were refused',
  about: 'by reason: count, share of refusals, and when',
  empty: 'Nothing was refused.',
  explain: wordsOf(REFUSAL_WORDS),
  tallies: ({ traffic }) => traffic.refusals,
  whole: ({ traffic }) => sum(traffic.refused),
}

const REASONS: RankPanelSpec = {
  title: 'Why verifications failed or lost score',
  about: 'by reason: count, share of verifications, and when',
  empty: 'No verification failed or lost score.',
  explain: wordsOf(JUDGEMENT_WORDS),
  tallies: ({ traffic }) => traffic.failureReasons,
  whole: ({ traffic: { passed, failed } }) => sum(passed) + sum(failed),
}

const SITES: RankPanelSpec = {
  title: 'Busiest sites',
  about: 'requests, share of all sites, and when',
  coversAllSites: true,
  empty: 'No site had requests.',
  explain(siteKey, { sites }) {
    if (siteKey === OTHER_SITES) return { title: 'Other sites', text: 'All sites without a row of their own' }
    const name = sites.find(site => site.siteKey === siteKey)?.name ?? siteKey
    return { title: name, text: name === siteKey ? '' : siteKey }
  },
  tallies: ({ busiest }) => busiest,
  whole: ({ sites }) => sum(sites.map(({ requests }) => requests)),
}

const LIMITS: RankPanelSpec = {
  title: 'Limits hit',
  about: 'requests refused with 429, and when',
  coversAllSites: true,
  empty: 'No limit was hit.',
  explain: explainLimit,
  tallies: ({ limits }) => limits,
  whole: ({ limits }) => sum(limits.map(({ total }) => total)),
}

/** Explains names by a table. One that it lacks has no text: workers may run newer code than this page. */
function wordsOf(words: Readonly<Record<string, string>>) {
  return (name: string) => ({ title: name, text: words[name] ?? '' })
}

/** @param name `<endpoint> <policy>` */
function explainLimit(name: string, { service }: DashboardData) {
  const [endpoint = '', policy = ''] = name.split(' ')
  const title = `/${endpoint} per ${policy.replace('address-site', 'address and site').replace('api-key', 'API key')}`
  return { title, text: limitText(endpoint, policy, service) }
}

const SCORE_LABELS = ['0', '0.1', '0.2', '0.3', '0.4', '0.5', '0.6', '0.7', '0.8', '0.9', '1']

function scorePanel(): PagePart {
  const plot = new BarPlot('Verifications by score', SCORE_LABELS)
  const about = 'share of scored verifications; 0.5 stands for 0.50 to 0.59'
  const panel = new Panel({ title: 'Scores', about }, [plot.element])
  return {
    element: panel.element,
    update({ traffic: { scores }, site }) {
      plot.update(scores)
      const rows = scores.map((count, index) => [SCORE_LABELS[index]!, exact(count)])
      panel.update(site !== null, () => ({ head: ['Score from', 'Verifications'], rows }))
    },
  }
}

const bitsText = (bits: number) => `${bits.toFixed(1).replace('.0', '')} bits`

const DIFFICULTY: LinePanelSpec = {
  title: 'Difficulty',
  about: 'bits of issued challenges; each one doubles the work of its puzzle',
  plots: [
    {
      label: 'Difficulty',
      curves: { 'SHA-256 mean': 'c0', 'SHA-256 highest': 'c1', 'HashWX mean': 'c2', 'HashWX highest': 'c3' },
      text: bitsText,
      tick: String,
      axisMin: 16,
      axisEnd: 20,
      isWhole: true,
    },
  ],
  values: ({
    traffic: {
      difficulty: { sha256, hashwx },
    },
  }) => [[sha256.mean, sha256.max, hashwx.mean, hashwx.max]],
  text: bitsText,
}

const MILLISECONDS = { text: milliseconds, tick: milliseconds }
const COUNTS = { text: exact, tick: short, axisEnd: 2, isWhole: true }
const PERCENTILES = ['p50', 'p95', 'p99'] as const

function latencySpec(label: string, heading: string): LinePlotSpec {
  return { label, heading, curves: { p50: 'c0', p95: 'c1', p99: 'c3' }, ...MILLISECONDS, axisEnd: 0.5 }
}

function inOrder(percentiles: Percentiles): Gaps[] {
  return PERCENTILES.map(name => percentiles[name])
}

const LATENCY: LinePanelSpec = {
  title: 'Latency',
  about: 'from a request’s headers to its answer; 99 % took at most p99',
  isWide: true,
  coversAllSites: true,
  plots: ENDPOINT_NAMES.map(endpoint => latencySpec(`Latency of /${endpoint}`, `/${endpoint}`)),
  values: ({ latencies }) => ENDPOINT_NAMES.map(endpoint => inOrder(latencies[endpoint])),
  head: ENDPOINT_NAMES.flatMap(endpoint => PERCENTILES.map(name => `/${endpoint} ${name}`)),
  text: milliseconds,
}

const STORE: LinePanelSpec = {
  title: 'Store',
  about: 'shaded in every plot: the store was away for at least one worker',
  isWide: true,
  coversAllSites: true,
  plots: [
    latencySpec('Store calls', 'Call latency'),
    {
      label: 'Store batches',
      heading: 'Operations per call',
      curves: { mean: 'c0' },
      text: value => value.toFixed(1),
      tick: short,
      axisEnd: 2,
    },
    {
      label: 'Store outages',
      heading: 'Times that a worker lost the store',
      curves: { lost: 'c1' },
      ...COUNTS,
    },
  ],
  values: ({ store }) => [inOrder(store.callMs), [store.batch], [store.outages]],
  head: [...PERCENTILES.map(name => `${name} ms`), 'operations', 'outages', 'up'],
  columns: ({ store }) => [...inOrder(store.callMs), store.batch, store.outages, store.up],
  text: short,
}

const WORKERS: LinePanelSpec = {
  title: 'Workers',
  about: 'lag of the worst, memory and restarts',
  isWide: true,
  coversAllSites: true,
  plots: [
    {
      label: 'Event loop lag',
      heading: 'Event loop lag',
      curves: { p99: 'c0' },
      ...MILLISECONDS,
      axisEnd: 1,
    },
    {
      label: 'Memory',
      heading: 'Resident memory',
      curves: { 'all workers': 'c0' },
      text: mebibytes,
      tick: mebibytes,
      axisEnd: 100,
    },
    {
      label: 'Replaced workers',
      heading: 'Workers replaced',
      curves: { 'ended or hung': 'c1', rolled: 'c0' },
      ...COUNTS,
    },
  ],
  values: ({ workers }) => [[workers.lagMs], [memoryMib(workers)], [workers.crashes, workers.rolls]],
  head: ['running', 'ended or hung', 'rolled', 'lag ms', 'MiB', 'faults', 'clients gone'],
  columns({ workers }) {
    const { running, crashes, rolls, lagMs, faults, aborted } = workers
    return [running, crashes, rolls, lagMs, memoryMib(workers), faults, aborted]
  },
  text: short,
}

function memoryMib({ residentBytes }: DashboardData['workers']): number[] {
  return residentBytes.map(bytes => Math.round(bytes / 2 ** 20))
}

/** The page's panels: each says what it shows, and `linePanel` or `barPanel` builds it. */

import { ENDPOINT_NAMES } from '../../domain/endpoint.ts'
import { JUDGEMENT_WORDS } from '../../words/reasons.ts'
import { REFUSAL_WORDS } from '../../words/refusals.ts'
import { type Gaps, OTHER_SITES, type Percentiles, sum, type Tally } from '../data.ts'
import type { DashboardData } from '../history.ts'
import { BarList, type BarRow } from './bars.ts'
import { h } from './dom.ts'
import { exact, mebibytes, milliseconds, percent, rate, short } from './format.ts'
import { LinePlot, type LinePlotSpec } from './line-plot.ts'
import { makePanel, NumberTable, type Panel, type PanelSpec } from './panel.ts'
import { limitText } from './problems.ts'

/**
 * The order is that in which someone on call needs the panels.
 *
 * @param choose called with the key of a clicked site
 */
export function makePanels(choose: (siteKey: string) => void): Panel[] {
  return [
    barPanel(STAGES),
    linePanel(TRAFFIC),
    linePanel(VERIFICATIONS),
    barPanel(REFUSALS),
    barPanel(REASONS),
    barPanel(SITES, choose),
    barPanel(SCORES),
    barPanel(LIMITS),
    linePanel(DIFFICULTY),
    linePanel(LATENCY),
    linePanel(STORE),
    linePanel(WORKERS),
  ]
}

interface PlotSpec extends LinePlotSpec {
  /** True if the values are counts: the plot shows them per second, the table as they are. */
  readonly isPerSecond?: boolean
}

interface LinePanelSpec extends PanelSpec {
  readonly plots: readonly PlotSpec[]
  /** Values by plot and curve. */
  readonly values: (data: DashboardData) => readonly (readonly Gaps[])[]
}

/** Plots over time, and all their values as a table. */
function linePanel({ plots: specs, values, ...spec }: LinePanelSpec): Panel {
  const { title } = spec
  const plots = specs.map(plot => new LinePlot(plot, [title, plot.heading ?? []].flat().join(' ')))
  const table = new NumberTable(title)
  const row = h('div', { class: 'row' }, ...plots.map(({ element }) => element))
  return makePanel(spec, [row, table.element], (data, frame) => {
    const ofPlots = values(data)
    for (const [index, plot] of plots.entries()) {
      const ofPlot = ofPlots[index]!
      plot.update(frame, specs[index]!.isPerSecond ? ofPlot.map(counts => perSecond(counts, data)) : ofPlot)
    }
    const columns = specs.flatMap(({ curves, heading = '', isPerSecond, text }, plot) =>
      curves.map((name, curve) => ({
        head: `${heading} ${name}`.trim(),
        values: ofPlots[plot]![curve]!,
        text: isPerSecond ? exact : text,
      })),
    )
    table.update(data.times, columns)
  })
}

function perSecond(counts: Gaps, { seconds }: DashboardData): Gaps {
  return counts.map((count, step) => (seconds[step]! > 0 ? (count ?? 0) / seconds[step]! : 0))
}

interface BarPanelSpec extends PanelSpec {
  /** The text of a list without rows. */
  readonly empty?: string
  readonly rows: (data: DashboardData) => readonly BarRow[]
}

function barPanel({ empty = '', rows, ...spec }: BarPanelSpec, choose?: (key: string) => void): Panel {
  const list = new BarList(empty, choose)
  return makePanel(spec, [list.element], (data, frame) => list.update(rows(data), frame))
}

/**
 * Makes a row of each tally.
 *
 * @param whole the number that shares refer to; the default is the sum of all tallies
 */
function rowsOf(
  tallies: readonly Tally[],
  explain: (name: string) => { readonly title: string; readonly text: string },
  whole = sum(tallies.map(({ total }) => total)),
): BarRow[] {
  return tallies.map(({ name, total, counts }) => {
    const share = whole > 0 ? percent(Math.min(1, total / whole)) : ''
    return { key: name, ...explain(name), total, share, counts }
  })
}

/** Each stage has its share of the one before. */
const STAGES: BarPanelSpec = {
  title: 'From challenge to redeemed token',
  about: 'whole range',
  look: 'wide funnel',
  rows({ traffic: { challenges, passed, failed, redeemed } }) {
    const stages = [
      { name: 'Challenges', note: 'issued', counts: challenges },
      { name: 'Solutions', note: 'of challenges', counts: solutions(passed, failed) },
      { name: 'Passed', note: 'of solutions', counts: passed },
      { name: 'Redeemed', note: 'of passed', counts: redeemed },
    ]
    return stages.map(({ name, note, counts }, index) => {
      const total = sum(counts)
      const before = sum(stages[index - 1]?.counts ?? [])
      // A stage can exceed the one before it, whose requests may be older than the range.
      const isShare = before > 0 && total <= before
      const text = index === 0 ? note : isShare ? `${percent(total / before)} ${note}` : ''
      return { key: name, title: name, text, total, share: '', counts }
    })
  },
}

function solutions(passed: readonly number[], failed: readonly number[]): number[] {
  return passed.map((count, step) => count + failed[step]!)
}

const PER_SECOND = { text: (value: number) => `${rate(value)}/s`, tick: short, axisEnd: 1, isPerSecond: true }

const TRAFFIC: LinePanelSpec = {
  title: 'Requests',
  about: 'per second',
  plots: [{ curves: ['challenges', 'verified', 'redeemed', 'refused'], ...PER_SECOND }],
  values: ({ traffic: { challenges, passed, failed, redeemed, refused } }) => [
    [challenges, solutions(passed, failed), redeemed, refused],
  ],
}

const VERIFICATIONS: LinePanelSpec = {
  title: 'Verifications',
  about: 'per second',
  plots: [{ curves: ['passed', 'failed'], ...PER_SECOND }],
  values: ({ traffic: { passed, failed } }) => [[passed, failed]],
}

/** Explains names by a table. One that it lacks has no text: workers may run newer code than this page. */
function wordsOf(words: Readonly<Record<string, string>>) {
  return (name: string) => ({ title: name, text: words[name] ?? '' })
}

const REFUSALS: BarPanelSpec = {
  title: 'Why requests were refused',
  about: 'by reason: count, share of refusals, and when',
  empty: 'Nothing was refused.',
  rows: ({ traffic }) => rowsOf(traffic.refusals, wordsOf(REFUSAL_WORDS)),
}

const REASONS: BarPanelSpec = {
  title: 'Why verifications failed or lost score',
  about: 'by reason: count, share of verifications, and when',
  empty: 'No verification failed or lost score.',
  rows: ({ traffic: { failureReasons, passed, failed } }) =>
    rowsOf(failureReasons, wordsOf(JUDGEMENT_WORDS), sum(passed) + sum(failed)),
}

const SITES: BarPanelSpec = {
  title: 'Busiest sites',
  about: 'requests, share of all sites, and when',
  coversAllSites: true,
  empty: 'No site had requests.',
  rows({ busiest, sites }) {
    const explain = (siteKey: string) => {
      if (siteKey === OTHER_SITES)
        return { title: 'Other sites', text: 'All sites without a row of their own' }
      const name = sites.find(site => site.siteKey === siteKey)?.name ?? siteKey
      return { title: name, text: name === siteKey ? '' : siteKey }
    }
    return rowsOf(busiest, explain, sum(sites.map(({ requests }) => requests)))
  },
}

const SCORES: BarPanelSpec = {
  title: 'Scores',
  about: 'count and share of scored verifications; 0.5 stands for 0.50 to 0.59',
  empty: 'No verification was scored.',
  rows({ traffic: { scores } }) {
    const tallies = scores.map((total, tenths) => ({ name: String(tenths / 10), total, counts: [] }))
    return sum(scores) === 0 ? [] : rowsOf(tallies, wordsOf({}))
  },
}

const LIMITS: BarPanelSpec = {
  title: 'Limits hit',
  about: 'requests refused with 429, and when',
  coversAllSites: true,
  empty: 'No limit was hit.',
  rows: ({ limits, service }) =>
    rowsOf(limits, name => {
      const [endpoint = '', policy = ''] = name.split(' ')
      const per = policy.replace('address-site', 'address and site').replace('api-key', 'API key')
      return { title: `/${endpoint} per ${per}`, text: limitText(endpoint, policy, service) }
    }),
}

const DIFFICULTY: LinePanelSpec = {
  title: 'Difficulty',
  about: 'bits of issued challenges; each one doubles the work of its puzzle',
  plots: [
    {
      curves: ['SHA-256 mean', 'SHA-256 highest', 'HashWX mean', 'HashWX highest'],
      text: bits => `${bits.toFixed(1).replace('.0', '')} bits`,
      tick: String,
      axisMin: 16,
      axisEnd: 20,
      isWhole: true,
    },
  ],
  values({ traffic }) {
    const { sha256, hashwx } = traffic.difficulty
    return [[sha256.mean, sha256.max, hashwx.mean, hashwx.max]]
  },
}

const MILLISECONDS = { text: milliseconds, tick: milliseconds }
const COUNTS = { text: exact, tick: short, axisEnd: 2, isWhole: true }
const LATENCIES = { curves: ['p50', 'p95', 'p99'], ...MILLISECONDS, axisEnd: 0.5 }

function inOrder({ p50, p95, p99 }: Percentiles): Gaps[] {
  return [p50, p95, p99]
}

const LATENCY: LinePanelSpec = {
  title: 'Latency',
  about: 'from a request’s headers to its answer; 99 % took at most p99',
  look: 'wide',
  coversAllSites: true,
  plots: ENDPOINT_NAMES.map(endpoint => ({ heading: `/${endpoint}`, ...LATENCIES })),
  values: ({ latencies }) => ENDPOINT_NAMES.map(endpoint => inOrder(latencies[endpoint])),
}

const STORE: LinePanelSpec = {
  title: 'Store',
  about: 'shaded in every plot: the store was away for at least one worker',
  look: 'wide',
  coversAllSites: true,
  plots: [
    { heading: 'Call latency', ...LATENCIES },
    {
      heading: 'Operations per call',
      curves: ['mean'],
      text: value => value.toFixed(1),
      tick: short,
      axisEnd: 2,
    },
    { heading: 'Times that a worker lost the store', curves: ['lost', 'up'], ...COUNTS },
  ],
  values: ({ store }) => [inOrder(store.callMs), [store.batch], [store.outages, store.up]],
}

const WORKERS: LinePanelSpec = {
  title: 'Workers',
  about: 'lag of the worst, memory of all, restarts',
  look: 'wide',
  coversAllSites: true,
  plots: [
    { heading: 'Event loop lag', curves: ['p99'], ...MILLISECONDS, axisEnd: 1 },
    { heading: 'Resident memory', curves: ['all workers'], text: mebibytes, tick: mebibytes, axisEnd: 100 },
    { heading: 'Workers replaced', curves: ['ended or hung', 'rolled', 'running'], ...COUNTS },
    { heading: 'Faults, clients gone', curves: ['faults', 'clients gone'], ...COUNTS },
  ],
  values: ({ workers: { lagMs, residentBytes, crashes, rolls, running, faults, aborted } }) => [
    [lagMs],
    [residentBytes.map(bytes => bytes / 2 ** 20)],
    [crashes, rolls, running],
    [faults, aborted],
  ],
}

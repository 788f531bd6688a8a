/** The page's panels: each says what it shows, and `linePanel` or `barPanel` builds it. */

import { ENDPOINT_NAMES } from '../../domain/endpoint.ts'
import { JUDGEMENT_WORDS } from '../../words/reasons.ts'
import { REFUSAL_WORDS } from '../../words/refusals.ts'
import { type Curve, OTHER_SITES, type Percentiles, sum, type Tally } from '../data.ts'
import type { DashboardData } from '../history.ts'
import { BarList, type BarRow } from './bars.ts'
import { h } from './dom.ts'
import { exact, milliseconds, percent, rate, short } from './format.ts'
import { LinePlot, type LinePlotSpec, type TimeFrame } from './line-plot.ts'
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

interface Panel {
  readonly element: HTMLElement
  update(data: DashboardData, frame: TimeFrame): void
}

interface PanelSpec {
  readonly title: string
  /** Names what is shown, with its unit. */
  readonly about: string
  /** Classes of the style sheet: as wide as the page, with rows beside each other. */
  readonly look?: '' | 'wide' | 'wide funnel'
  /** True if the numbers are of all sites even if one site is chosen. The panel then says so. */
  readonly coversAllSites?: boolean
}

/** @param update shows new numbers in the content */
function makePanel(
  { title, about, look = '', coversAllSites = false }: PanelSpec,
  content: HTMLElement,
  update: Panel['update'],
): Panel {
  const allSites = h('span', { class: 'tag', hidden: true }, 'all sites')
  const heading = h('div', { class: 'heading' }, h('h3', {}, title), allSites, h('p', {}, about))
  return {
    element: h('section', { class: `panel ${look}` }, heading, content),
    update(data, frame) {
      allSites.hidden = !coversAllSites || data.site === null
      update(data, frame)
    },
  }
}

interface PlotSpec extends LinePlotSpec {
  readonly values: (data: DashboardData) => readonly Curve[]
}

interface LinePanelSpec extends PanelSpec {
  readonly plots: readonly PlotSpec[]
}

/** A panel of plots over time. */
function linePanel({ plots: specs, ...spec }: LinePanelSpec): Panel {
  const plots = specs.map(plot => new LinePlot(plot, `${spec.title} ${plot.heading ?? ''}`.trim()))
  const content = h('div', { class: 'side-by-side' }, ...plots.map(({ element }) => element))
  return makePanel(spec, content, (data, frame) => {
    for (const [index, plot] of plots.entries()) plot.update(frame, specs[index]!.values(data))
  })
}

interface BarPanelSpec extends PanelSpec {
  /** The text of a list without rows. */
  readonly empty?: string
  readonly rows: (data: DashboardData) => readonly BarRow[]
}

function barPanel({ empty = '', rows, ...spec }: BarPanelSpec, choose?: (key: string) => void): Panel {
  const list = new BarList(empty, choose)
  return makePanel(spec, list.element, (data, frame) => list.update(rows(data), frame))
}

/** Makes a row of each tally. @param whole the number that shares refer to; the default is the sum of all tallies */
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

const TRAFFIC: LinePanelSpec = {
  title: 'Requests',
  about: 'per second',
  look: 'wide',
  plots: [
    {
      curves: ['challenges', 'verified', 'redeemed', 'refused'],
      text: value => `${rate(value)}/s`,
      tick: short,
      axisEnd: 1,
      values({ seconds, traffic: { challenges, passed, failed, redeemed, refused } }) {
        const curves = [challenges, solutions(passed, failed), redeemed, refused]
        // After the primary process stood still, two steps can end in one millisecond.
        return curves.map(counts => counts.map((count, step) => count / (seconds[step]! || 1)))
      },
    },
  ],
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
      const title = `/${endpoint} ${policy === 'junk' ? 'junk' : `per ${per}`}`
      return { title, text: limitText(endpoint, policy, service) }
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
      values({ traffic }) {
        const { sha256, hashwx } = traffic.difficulty
        return [sha256.mean, sha256.max, hashwx.mean, hashwx.max]
      },
    },
  ],
}

const MILLISECONDS = { text: milliseconds, tick: milliseconds }
const COUNTS = { text: exact, tick: short, axisEnd: 2, isWhole: true }

function latencyPlot(heading: string, percentiles: (data: DashboardData) => Percentiles): PlotSpec {
  const curves = ['p50', 'p95', 'p99'] as const
  const values = (data: DashboardData) => curves.map(name => percentiles(data)[name])
  return { heading, curves, ...MILLISECONDS, axisEnd: 0.5, values }
}

const LATENCY: LinePanelSpec = {
  title: 'Latency',
  about: 'from a request’s last byte to its answer; 99 % took at most p99',
  look: 'wide',
  coversAllSites: true,
  plots: ENDPOINT_NAMES.map(endpoint => latencyPlot(`/${endpoint}`, ({ latencies }) => latencies[endpoint])),
}

const STORE: LinePanelSpec = {
  title: 'Store',
  about: 'up is 0 while it is away for at least one worker',
  look: 'wide',
  coversAllSites: true,
  plots: [
    latencyPlot('Call latency', ({ store }) => store.callMs),
    {
      heading: 'Times that a worker lost the store',
      curves: ['lost', 'up'],
      ...COUNTS,
      values: ({ store }) => [store.outages, store.up],
    },
  ],
}

const WORKERS: LinePanelSpec = {
  title: 'Workers',
  about: 'lag of the worst',
  look: 'wide',
  coversAllSites: true,
  plots: [
    {
      heading: 'Event loop lag',
      curves: ['p99'],
      ...MILLISECONDS,
      axisEnd: 1,
      values: ({ workers }) => [workers.lagMs],
    },
    {
      heading: 'Faults, clients gone',
      curves: ['faults', 'clients gone'],
      ...COUNTS,
      values: ({ workers }) => [workers.faults, workers.aborted],
    },
  ],
}

/** Which plots there are, and which numbers they show. */

import { type DashboardData, ENDPOINTS, type Gaps, type Percentiles } from '../../observe/history-view.ts'
import { BarList } from './bar-list.ts'
import { BarPlot } from './bar-plot.ts'
import type { Cursor } from './cursor.ts'
import { bytes, clockSeconds, exact, milliseconds, moment, rate, short } from './format.ts'
import { Funnel } from './funnel.ts'
import { LinePlot, type LinePlotSpec, type TimeFrame } from './line-plot.ts'
import { type NumberTable, Panel } from './panel.ts'
import { explainJudgement, explainLimit, explainRefusal } from './reasons.ts'

export interface PagePart {
  readonly element: HTMLElement
  update(data: DashboardData, frame: TimeFrame): void
}

const PERCENTILES = ['p50', 'p95', 'p99'] as const

export function makePanels(cursor: Cursor): PagePart[] {
  return [
    funnelPanel(),
    trafficPanel(cursor),
    verificationPanel(cursor),
    refusalPanel(),
    reasonPanel(),
    scorePanel(),
    difficultyPanel(cursor),
    limitPanel(),
    workerPanel(cursor),
    latencyPanel(cursor),
    storePanel(cursor),
  ]
}

function funnelPanel(): PagePart {
  const funnel = new Funnel()
  const panel = new Panel(
    { title: 'From challenge to redeemed token', about: 'whole range', isWide: true },
    [funnel.element],
    false,
  )
  return { element: panel.element, update: ({ traffic }) => funnel.update(traffic) }
}

const PER_SECOND: Pick<LinePlotSpec, 'text' | 'tick' | 'axisMax'> = {
  text: value => `${rate(value)}/s`,
  tick: short,
  axisMax: 1,
}

function trafficPanel(cursor: Cursor): PagePart {
  const curves = [
    { name: 'challenges', look: 'c0' },
    { name: 'verifications', look: 'c1' },
    { name: 'redemptions', look: 'c2' },
    { name: 'refused', look: 'c3' },
  ]
  const plot = new LinePlot({ label: 'Requests', curves, ...PER_SECOND }, cursor)
  const panel = new Panel({ title: 'Requests', about: 'per second' }, [plot.element])
  return {
    element: panel.element,
    update({ traffic, seconds, site, times }, frame) {
      const { challenges, passed, failed, redeemed, refused } = traffic
      const verified = passed.map((count, index) => count + failed[index]!)
      const counts = [challenges, verified, redeemed, refused]
      plot.update(
        frame,
        counts.map(column => perSecond(column, seconds)),
      )
      panel.update(site !== null, () =>
        stepTable(
          times,
          curves.map(({ name }) => name),
          counts,
          exact,
        ),
      )
    },
  }
}

function verificationPanel(cursor: Cursor): PagePart {
  const curves = [
    { name: 'passed', look: 'c0' },
    { name: 'failed', look: 'c1' },
  ]
  const spec = { label: 'Verifications', curves, ...PER_SECOND, isStacked: true }
  const plot = new LinePlot(spec, cursor)
  const panel = new Panel({ title: 'Verifications', about: 'per second, one upon the other' }, [plot.element])
  return {
    element: panel.element,
    update({ traffic: { passed, failed }, seconds, site, times }, frame) {
      plot.update(frame, [perSecond(passed, seconds), perSecond(failed, seconds)])
      panel.update(site !== null, () => stepTable(times, ['passed', 'failed'], [passed, failed], exact))
    },
  }
}

function refusalPanel(): PagePart {
  const list = new BarList('Nothing was refused.', explainRefusal)
  const about = 'by reason: count, share of refusals, and when'
  const panel = new Panel({ title: 'Why requests were refused', about }, [list.element], false)
  return {
    element: panel.element,
    update: ({ traffic: { refusals, refused } }, frame) => list.update(refusals, sum(refused), frame),
  }
}

function reasonPanel(): PagePart {
  const list = new BarList('No verification failed or lost score.', explainJudgement)
  const about = 'by reason: count, share of verifications, and when'
  const panel = new Panel({ title: 'Why verifications failed or lost score', about }, [list.element], false)
  return {
    element: panel.element,
    update: ({ traffic: { failureReasons, passed, failed } }, frame) =>
      list.update(failureReasons, sum(passed) + sum(failed), frame),
  }
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

const BITS_MIN = 16

function difficultyPanel(cursor: Cursor): PagePart {
  const curves = [
    { name: 'mean', look: 'c0' },
    { name: 'highest', look: 'c1' },
  ]
  const text = (bits: number) => `${bits.toFixed(1).replace('.0', '')} bits`
  const axis = { axisMin: BITS_MIN, axisMax: 20, isWhole: true }
  const plot = new LinePlot({ label: 'Difficulty', curves, text, tick: String, ...axis }, cursor)
  const about = 'bits of issued challenges; each one doubles the work'
  const panel = new Panel({ title: 'Difficulty', about }, [plot.element])
  return {
    element: panel.element,
    update({ traffic: { difficulty }, site, times }, frame) {
      const values = [difficulty.mean, difficulty.max]
      plot.update(frame, values)
      panel.update(site !== null, () => stepTable(times, ['mean', 'highest'], values, text))
    },
  }
}

function limitPanel(): PagePart {
  const list = new BarList('No limit was hit.', explainLimit)
  const about = 'requests refused with 429, and when'
  const panel = new Panel({ title: 'Limits hit', about, isOfAllSites: true }, [list.element], false)
  return {
    element: panel.element,
    update({ limits, site }, frame) {
      list.update(
        limits,
        limits.reduce((total, limit) => total + limit.total, 0),
        frame,
      )
      panel.update(site !== null)
    },
  }
}

function latencySpec(label: string): LinePlotSpec {
  const looks = ['c0', 'c1', 'c3']
  const curves = PERCENTILES.map((name, index) => ({ name, look: looks[index]! }))
  return { label, curves, text: milliseconds, tick: milliseconds, axisMax: 0.5 }
}

function latencyPanel(cursor: Cursor): PagePart {
  const plots = ENDPOINTS.map(
    endpoint => new LinePlot(latencySpec(`Latency of /${endpoint}`), cursor, `/${endpoint}`),
  )
  const about = 'from a request’s headers to its answer; 99 % took at most p99'
  const panel = new Panel({ title: 'Latency', about, isWide: true, isOfAllSites: true }, [
    row(plots.map(({ element }) => element)),
  ])
  return {
    element: panel.element,
    update({ latencies, site, times }, frame) {
      for (const [index, endpoint] of ENDPOINTS.entries())
        plots[index]!.update(frame, inOrder(latencies[endpoint]))
      const head = ENDPOINTS.flatMap(endpoint => PERCENTILES.map(name => `/${endpoint} ${name}`))
      const columns = ENDPOINTS.flatMap(endpoint => inOrder(latencies[endpoint]))
      panel.update(site !== null, () => stepTable(times, head, columns, milliseconds))
    },
  }
}

function storePanel(cursor: Cursor): PagePart {
  const calls = new LinePlot(latencySpec('Store calls'), cursor, 'Call latency')
  const operations = (value: number) => value.toFixed(1)
  const batch = new LinePlot(
    {
      label: 'Store batches',
      curves: [{ name: 'mean', look: 'c0' }],
      text: operations,
      tick: short,
      axisMax: 2,
    },
    cursor,
    'Operations in a call',
  )
  const outages = new LinePlot(
    {
      label: 'Store outages',
      curves: [{ name: 'lost', look: 'c1' }],
      text: exact,
      tick: short,
      axisMax: 2,
      isWhole: true,
    },
    cursor,
    'Times that a worker lost it',
  )
  const about = 'shaded in every plot: the store was away for at least one worker'
  const panel = new Panel({ title: 'Store', about, isWide: true, isOfAllSites: true }, [
    row([calls.element, batch.element, outages.element]),
  ])
  return {
    element: panel.element,
    update({ store, site, times }, frame) {
      calls.update(frame, inOrder(store.callMs))
      batch.update(frame, [store.batch])
      outages.update(frame, [store.outages])
      const head = [...PERCENTILES.map(name => `${name} ms`), 'operations', 'outages', 'up']
      const columns = [...inOrder(store.callMs), store.batch, store.outages, store.up]
      panel.update(site !== null, () => stepTable(times, head, columns, short))
    },
  }
}

function workerPanel(cursor: Cursor): PagePart {
  const lag = new LinePlot(
    {
      label: 'Event loop lag',
      curves: [{ name: 'p99', look: 'c0' }],
      text: milliseconds,
      tick: milliseconds,
      axisMax: 1,
    },
    cursor,
    'Event loop lag, worst worker',
  )
  const memory = new LinePlot(
    {
      label: 'Memory',
      curves: [{ name: 'all workers', look: 'c0' }],
      text: bytes,
      tick: bytes,
      axisMax: 2 ** 27,
    },
    cursor,
    'Resident memory',
  )
  const panel = new Panel({ title: 'Workers', about: 'how busy they are', isOfAllSites: true }, [
    lag.element,
    memory.element,
  ])
  return {
    element: panel.element,
    update({ workers, site, times }, frame) {
      lag.update(frame, [workers.lagMs])
      memory.update(frame, [workers.residentBytes])
      const head = ['running', 'crashed', 'rolled', 'lag ms', 'MiB', 'faults', 'aborted']
      const mib = workers.residentBytes.map(count => Math.round(count / 2 ** 20))
      const { running, crashes, rolls, lagMs, faults, aborted } = workers
      panel.update(site !== null, () =>
        stepTable(times, head, [running, crashes, rolls, lagMs, mib, faults, aborted], short),
      )
    },
  }
}

function row(plots: readonly HTMLElement[]): HTMLElement {
  const element = document.createElement('div')
  element.className = 'row'
  element.append(...plots)
  return element
}

function inOrder(percentiles: Percentiles): Gaps[] {
  return PERCENTILES.map(name => percentiles[name])
}

function perSecond(counts: readonly number[], seconds: readonly number[]): number[] {
  return counts.map((count, index) => (seconds[index]! > 0 ? count / seconds[index]! : 0))
}

/** A row for each step, the latest first. */
function stepTable(
  times: readonly number[],
  head: readonly string[],
  columns: readonly Gaps[],
  text: (value: number) => string,
): NumberTable {
  const isLong = (times.at(-1) ?? 0) - (times[0] ?? 0) > 12 * 3_600_000
  const rows = times.map((time, index) => [
    isLong ? moment(time) : clockSeconds(time),
    ...columns.map(column => cell(column[index], text)),
  ])
  return { head: ['Until', ...head], rows: rows.reverse() }
}

function cell(value: number | null | undefined, text: (value: number) => string): string {
  return value === null || value === undefined ? '–' : text(value)
}

function sum(counts: readonly number[]): number {
  return counts.reduce((total, count) => total + count, 0)
}

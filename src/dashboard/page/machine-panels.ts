/** Panels about the service itself: latencies, store, workers. */

import { ENDPOINTS, type Gaps, type Percentiles } from '../../metrics/history-view.ts'
import type { Cursor } from './cursor.ts'
import { exact, mebibytes, milliseconds, short } from './format.ts'
import { LinePlot, type LinePlotSpec } from './line-plot.ts'
import { type PagePart, Panel } from './panel.ts'
import { stepTable } from './step-table.ts'

const MILLISECONDS = { text: milliseconds, tick: milliseconds }
const COUNTS = { text: exact, tick: short, axisMax: 2, isWhole: true }
const PERCENTILES = ['p50', 'p95', 'p99'] as const

function latencySpec(label: string): LinePlotSpec {
  const looks = ['c0', 'c1', 'c3']
  const curves = PERCENTILES.map((name, index) => ({ name, look: looks[index]! }))
  return { label, curves, ...MILLISECONDS, axisMax: 0.5 }
}

export function latencyPanel(cursor: Cursor): PagePart {
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

export function storePanel(cursor: Cursor): PagePart {
  const calls = new LinePlot(latencySpec('Store calls'), cursor, 'Call latency')
  const operations = (value: number) => value.toFixed(1)
  const mean = [{ name: 'mean', look: 'c0' }]
  const batch = new LinePlot(
    { label: 'Store batches', curves: mean, text: operations, tick: short, axisMax: 2 },
    cursor,
    'Operations in a call',
  )
  const outages = new LinePlot(
    { label: 'Store outages', curves: [{ name: 'lost', look: 'c1' }], ...COUNTS },
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

export function workerPanel(cursor: Cursor): PagePart {
  const lag = new LinePlot(
    { label: 'Event loop lag', curves: [{ name: 'p99', look: 'c0' }], ...MILLISECONDS, axisMax: 1 },
    cursor,
    'Event loop lag, worst worker',
  )
  const all = [{ name: 'all workers', look: 'c0' }]
  const memory = new LinePlot(
    { label: 'Memory', curves: all, text: mebibytes, tick: mebibytes, axisMax: 100 },
    cursor,
    'Resident memory',
  )
  const curves = [
    { name: 'ended or hung', look: 'c1' },
    { name: 'rolled', look: 'c0' },
  ]
  const replaced = new LinePlot({ label: 'Replaced workers', curves, ...COUNTS }, cursor, 'Workers replaced')
  const about = 'how busy they are, and whether they stay'
  const panel = new Panel({ title: 'Workers', about, isWide: true, isOfAllSites: true }, [
    row([lag.element, memory.element, replaced.element]),
  ])
  return {
    element: panel.element,
    update({ workers, site, times }, frame) {
      const { running, crashes, rolls, lagMs, residentBytes, faults, aborted } = workers
      const mib = residentBytes.map(count => Math.round(count / 2 ** 20))
      lag.update(frame, [lagMs])
      memory.update(frame, [mib])
      replaced.update(frame, [crashes, rolls])
      const head = ['running', 'ended or hung', 'rolled', 'lag ms', 'MiB', 'faults', 'clients gone']
      const columns = [running, crashes, rolls, lagMs, mib, faults, aborted]
      panel.update(site !== null, () => stepTable(times, head, columns, short))
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

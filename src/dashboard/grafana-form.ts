/** How Grafana describes a dashboard: where panels stand, and what those of each type look like. */

/** A panel in Grafana's words, without its place. */
export interface Panel {
  readonly id: number
  readonly type: keyof typeof HEIGHTS
  readonly [field: string]: unknown
}

/** A part of the dashboard under a heading of its own. The panels of a line share its width. */
export interface Part {
  readonly title: string
  readonly lines: readonly (readonly Panel[])[]
}

/** PromQL by legend. */
export type Queries = Readonly<Record<string, string>>

const COLUMNS = 24
const HEIGHTS = { stat: 4, timeseries: 8, bargauge: 8, heatmap: 8, table: 5 }
/** Ids of headings start here; those of panels are lower. */
const HEADING_ID = 1000
const SOURCE = { type: 'prometheus', uid: '$' + '{datasource}' }

const CHOICE = { regex: '', hide: 0, multi: false, includeAll: false, current: {}, options: [] }
const INSTANCES = 'label_values(powgate_workers, instance)'

/** What is no panel: title, choices at the top, range and refresh. */
const FRAME = {
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
  templating: {
    list: [
      {
        ...CHOICE,
        name: 'datasource',
        label: 'Data source',
        type: 'datasource',
        query: 'prometheus',
        refresh: 1,
      },
      {
        ...CHOICE,
        name: 'instance',
        label: 'Instance',
        type: 'query',
        datasource: SOURCE,
        query: { query: INSTANCES, refId: 'instances' },
        definition: INSTANCES,
        refresh: 2,
        sort: 1,
        multi: true,
        includeAll: true,
        allValue: '.*',
        current: { selected: true, text: ['All'], value: ['$__all'] },
      },
    ],
  },
}

/** The dashboard as Grafana imports it. */
export function dashboardOf(parts: readonly Part[]): unknown {
  const panels: unknown[] = []
  let y = 0
  for (const [index, { title, lines }] of parts.entries()) {
    const gridPos = { h: 1, w: COLUMNS, x: 0, y }
    panels.push({ id: HEADING_ID + index, type: 'row', title, collapsed: false, gridPos, panels: [] })
    y += gridPos.h
    for (const line of lines) {
      const w = Math.floor(COLUMNS / line.length)
      const h = Math.max(...line.map(({ type }) => HEIGHTS[type]))
      panels.push(...line.map((panel, place) => ({ ...panel, gridPos: { h, w, x: place * w, y } })))
      y += h
    }
  }
  return { ...FRAME, panels }
}

type Common = [id: number, title: string, about: string, unit: string]

/** What panels of every type have. */
function panel(
  type: Panel['type'],
  [id, title, description, unit]: Common,
  queries: Queries,
  fields: object,
  options: object,
  target: object = { range: true, instant: false },
  overrides: readonly object[] = [],
): Panel {
  const targets = Object.entries(queries).map(([legendFormat, expr], index) => ({
    refId: 'ABCD'[index],
    datasource: SOURCE,
    expr,
    legendFormat,
    ...target,
  }))
  const fieldConfig = { defaults: { unit, ...fields }, overrides }
  return { id, type, title, description, datasource: SOURCE, fieldConfig, options, targets }
}

const LATEST = { calcs: ['lastNotNull'], fields: '', values: false }

interface StatChoices {
  readonly query: string
  /** Below 1, and from there on. */
  readonly colors?: readonly [string, string]
  /** Of 0 and 1. */
  readonly texts?: readonly [string, string]
  readonly decimals?: number
  readonly isPlotted?: boolean
}

/** One number, and how it went. */
export function stat(id: number, title: string, about: string, unit: string, choices: StatChoices): Panel {
  const { query, colors, texts, decimals, isPlotted = true } = choices
  const [low, high] = colors ?? ['text']
  const steps = [{ color: low, value: null }, ...(high === undefined ? [] : [{ color: high, value: 1 }])]
  const options = Object.fromEntries((texts ?? []).map((text, index) => [index, { text, index }]))
  const fields = {
    thresholds: { mode: 'absolute', steps },
    color: { mode: 'thresholds' },
    noValue: '–',
    decimals,
    mappings: texts && [{ type: 'value', options }],
  }
  return panel('stat', [id, title, about, unit], { [title]: query }, fields, {
    reduceOptions: LATEST,
    colorMode: 'value',
    graphMode: isPlotted ? 'area' : 'none',
    justifyMode: 'auto',
    textMode: 'value',
    orientation: 'auto',
  })
}

/** The vertical axis, and whether curves are drawn one upon the other. */
interface CurveChoices {
  readonly min?: number
  readonly max?: number
  readonly isStacked?: boolean
}

const FROM_ZERO: CurveChoices = { min: 0 }
export const STACKED: CurveChoices = { min: 0, isStacked: true }

/** Numbers over time. */
export function curves(
  id: number,
  title: string,
  about: string,
  unit: string,
  queries: Queries,
  { isStacked = false, ...axis } = FROM_ZERO,
): Panel {
  const custom = {
    drawStyle: 'line',
    lineWidth: 1,
    fillOpacity: isStacked ? 25 : 8,
    showPoints: 'never',
    spanNulls: false,
    stacking: { mode: isStacked ? 'normal' : 'none', group: 'A' },
  }
  const fields = { custom, ...axis, color: { mode: 'palette-classic' } }
  return panel('timeseries', [id, title, about, unit], queries, fields, {
    legend: { displayMode: 'table', placement: 'bottom', showLegend: true, calcs: ['lastNotNull', 'max'] },
    tooltip: { mode: 'multi', sort: 'desc' },
  })
}

/** Counts within the dashboard's range, the greatest first. */
export function ranks(id: number, title: string, about: string, queries: Queries): Panel {
  const fields = {
    min: 0,
    color: { mode: 'fixed', fixedColor: 'blue' },
    thresholds: { mode: 'absolute', steps: [{ color: 'blue', value: null }] },
    decimals: 0,
  }
  const options = {
    displayMode: 'basic',
    orientation: 'horizontal',
    showUnfilled: true,
    valueMode: 'color',
    namePlacement: 'left',
    minVizHeight: 10,
    minVizWidth: 0,
    maxVizHeight: 40,
    sizing: 'auto',
    reduceOptions: LATEST,
  }
  const target = { range: false, instant: true }
  return panel('bargauge', [id, title, about, 'short'], queries, fields, options, target)
}

/** Counts by bucket of a histogram, over time. */
export function heatmap(id: number, title: string, about: string, queries: Queries): Panel {
  const options = {
    calculate: false,
    yAxis: { axisPlacement: 'left', unit: 'short' },
    color: {
      mode: 'scheme',
      scheme: 'Blues',
      steps: 64,
      exponent: 0.5,
      fill: 'dark-blue',
      scale: 'exponential',
      reverse: false,
    },
    cellGap: 1,
    rowsFrame: { layout: 'le' },
    filterValues: { le: 1e-9 },
    legend: { show: true },
    tooltip: { mode: 'single', yHistogram: false, showColorScale: false },
    showValue: 'never',
    exemplars: { color: 'rgba(255,0,255,0.7)' },
  }
  const target = { range: true, instant: false, format: 'heatmap' }
  return panel('heatmap', [id, title, about, 'short'], queries, {}, options, target)
}

/** The labels of a metric that always has the value 1. */
export function table(id: number, title: string, about: string, query: string): Panel {
  const hidden = {
    matcher: { id: 'byRegexp', options: 'Time|Value' },
    properties: [{ id: 'custom.hidden', value: true }],
  }
  const fields = { custom: { align: 'auto' } }
  const options = { showHeader: true, cellHeight: 'sm' }
  const target = { range: false, instant: true, format: 'table' }
  return panel('table', [id, title, about, 'short'], { '': query }, fields, options, target, [hidden])
}

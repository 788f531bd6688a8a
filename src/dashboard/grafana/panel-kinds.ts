/** Kinds of Grafana's panels: numbers, curves, a heatmap and tables. What is not set here has Grafana's default. */

export interface PanelKind {
  readonly type: string
  readonly fieldConfig: { readonly defaults: object; readonly overrides: readonly object[] }
  readonly options?: object
  /** Options of each query. By default, a query asks for a value at each step of the range. */
  readonly target?: object
}

/** The query asks for a single value, at the end of the range. */
const INSTANT = { range: false, instant: true }

function steps(...colors: [color: string, from: number | null][]) {
  return { mode: 'absolute', steps: colors.map(([color, value]) => ({ color, value })) }
}

export const RED_AT_0 = { thresholds: steps(['red', null], ['green', 1]), decimals: 0 }
export const UP_OR_AWAY = {
  ...RED_AT_0,
  mappings: [{ type: 'value', options: { 0: { text: 'Away', index: 0 }, 1: { text: 'Up', index: 1 } } }],
}

export function stat(unit: string, defaults: object = {}, graphMode = 'area'): PanelKind {
  const plain = { unit, thresholds: steps(['text', null]), color: { mode: 'thresholds' }, noValue: '–' }
  const fieldConfig = { defaults: { ...plain, ...defaults }, overrides: [] }
  return { type: 'stat', fieldConfig, options: { textMode: 'value', graphMode } }
}

export function lines(unit: string, defaults: object = {}): PanelKind {
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
export const STACKED = lines('reqps', { custom: STACKING })

export const HEATMAP: PanelKind = {
  type: 'heatmap',
  fieldConfig: { defaults: { unit: 'short' }, overrides: [] },
  options: { rowsFrame: { layout: 'le' }, color: { mode: 'scheme', scheme: 'Blues' }, showValue: 'never' },
  target: { format: 'heatmap' },
}

const HIDDEN = [{ id: 'custom.hidden', value: true }]

export const TABLE: PanelKind = {
  type: 'table',
  fieldConfig: {
    defaults: { unit: 'short' },
    overrides: [{ matcher: { id: 'byRegexp', options: 'Time|Value' }, properties: HIDDEN }],
  },
  target: { ...INSTANT, format: 'table' },
}

/**
 * The dashboard for Grafana and the rules for Prometheus name only metrics of METRICS and labels that these metrics have: a
 * query of anything else is an empty panel, or an alert that never fires. Each metric is shown, and told in metrics.md.
 */

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { parse } from 'yaml'
import { ENDPOINT_NAMES } from '../../src/domain/endpoint.ts'
import { METRICS, type Metric } from '../../src/metrics/table.ts'

interface Panel {
  readonly id: number
  readonly title: string
  readonly datasource?: { readonly uid: string }
  readonly gridPos: { readonly w: number }
  readonly fieldConfig: { readonly defaults: { readonly min?: number } }
  /** A heading has none. */
  readonly targets?: readonly {
    readonly expr: string
    readonly legendFormat: string
    readonly datasource: { readonly uid: string }
  }[]
}

/** Titles of the page without a namesake in Grafana, with the reason. */
const ON_THE_PAGE_ONLY: Readonly<Record<string, string>> = {
  'Busiest sites': 'no metric has the site as its label, unless asked for',
  'From challenge to redeemed token': 'the curves of Requests, as a funnel',
}

/** A name that is no function's, with its selector `{...}` and the `[` of its range, if it has them. */
const NAME = /(?<![\w$])([a-zA-Z_]\w*)\b(?! *\()(\{[^}]*\})?(\[)?/g
const GROUPING = /\b(?:by|on) \(([^)]*)\)/g

const textOf = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')
const dashboard = JSON.parse(textOf('dist/dashboard/grafana.json'))
const panels: readonly Panel[] = dashboard.panels
const targets = panels.flatMap(({ targets = [] }) => targets)
const rules: readonly string[] = parse(textOf('src/dashboard/alerts.yml')).groups.flatMap(
  ({ rules }: { rules: { expr: string }[] }) => rules.map(({ expr }) => expr),
)
const metrics: readonly Metric[] = Object.values(METRICS)

interface Series {
  readonly metric: Metric
  readonly labels: readonly string[]
}

/** Each series by the name that queries know: a histogram has three. */
const SERIES: ReadonlyMap<string, Series> = new Map(
  metrics.flatMap(metric => {
    // Prometheus gives every series the first two, POWGATE_DEPLOYMENT the third.
    const labels = ['instance', 'job', 'deployment', ...(metric.labels ?? [])]
    if (metric.type !== 'histogram') return [[metric.name, { metric, labels }]]
    const bucket = { metric, labels: [...labels, 'le'] }
    const suffixes = { _bucket: bucket, _sum: { metric, labels }, _count: { metric, labels } }
    return Object.entries(suffixes).map(([end, series]): [string, Series] => [metric.name + end, series])
  }),
)

/** Returns the series that a query names, as often as it names them. Throws if it names a metric or label that is not there. */
function checkedSeries(expr: string): Series[] {
  const withoutTexts = expr.replace(/"[^"]*"/g, '""')
  const found: Series[] = []
  for (const [, name, selector = '', range] of withoutTexts.replace(GROUPING, '').matchAll(NAME)) {
    if (['offset', 'and', 'or', 'unless', 'up'].includes(name!)) continue // no metric of powgate: `up` is Prometheus' own
    const series = SERIES.get(name!)
    assert.ok(series !== undefined, `there is no metric ${name}: ${expr}`)
    for (const [, label] of selector.matchAll(/(\w+) *[=!]/g))
      assert.ok(series.labels.includes(label!), `${name} has no label ${label}: ${expr}`)
    const isUseful = range !== undefined || series.metric.type === 'gauge'
    assert.ok(isUseful, `${name} only grows, ask its rate: ${expr}`)
    found.push(series)
  }
  for (const label of groupsOf(expr))
    for (const { labels } of found)
      assert.ok(labels.includes(label), `no label ${label} to group by: ${expr}`)
  return found
}

/** The labels after `by` and `on`. */
function groupsOf(expr: string): string[] {
  return [...expr.matchAll(GROUPING)].flatMap(([, labels]) => labels!.split(', '))
}

test('every query of the dashboard names metrics and labels that exist, of the chosen hosts', () => {
  for (const { expr, legendFormat } of targets) {
    const found = checkedSeries(expr)
    assert.ok(found.length > 0, expr)
    // Other programs have metrics of the names that are not powgate's own.
    const job = /\b(process|nodejs)_/.test(expr) ? ',job="powgate"' : ''
    const chosen = `{deployment=~"$deployment",instance=~"$instance"${job}`
    assert.equal(expr.split(chosen).length - 1, found.length, `not of ${chosen}: ${expr}`)
    assert.doesNotMatch(expr, /process[=!]/, 'it leaves out some, such as the store process')
    const groups = groupsOf(expr)
    const labels = groups.length > 0 ? groups : found[0]!.labels
    for (const [, label] of legendFormat.matchAll(/\{\{(\w+)\}\}/g))
      assert.ok(labels.includes(label!), `its legend has no label ${label}: ${expr}`)
  }
  const [, ...variables] = dashboard.templating.list // the first chooses the data source
  for (const { definition, allValue } of variables) {
    const [, name, label] = /^label_values\((\w+)[^,]*, (\w+)\)$/.exec(definition)!
    assert.ok(SERIES.has(name!), definition)
    if (label === 'deployment') assert.equal(allValue, '.*', 'all, also those without the label')
    else assert.equal(allValue, undefined, 'all that the query found, which are those of powgate')
  }
})

test('every rule for Prometheus names metrics and labels that exist', () => {
  assert.ok(rules.length > 15)
  for (const expr of rules) checkedSeries(expr)
})

test('the plot of the clocks shows those that are behind, too', () => {
  assert.equal(panels.find(({ title }) => title === 'Clock')!.fieldConfig.defaults.min, undefined)
})

test('ids are unique, for links name them; every panel asks the chosen data source', () => {
  assert.equal(new Set(panels.map(({ id }) => id)).size, panels.length)
  const asked = [...panels.filter(({ targets }) => targets !== undefined), ...targets]
  for (const { datasource } of asked) assert.equal(datasource?.uid, '$' + '{datasource}') // Grafana's variable, not JavaScript's
})

test('what the page of the dashboard shows too has the same title', () => {
  const text = textOf('src/dashboard/page/panels.ts')
  // `return { title: 'Other sites' }` is the title of a row, not of a panel.
  const shown = [...text.matchAll(/(?<!return \{ )(?:title|heading): '([^']+)'/g)].map(([, title]) => title!)
  const titles = new Set(panels.map(({ title }) => title))
  const missing = shown.filter(title => !titles.has(title))
  assert.deepEqual(missing.sort(), Object.keys(ON_THE_PAGE_ONLY).sort())
})

test('every metric is shown, and every endpoint has a panel of its latency', () => {
  const shown = new Set(targets.flatMap(({ expr }) => checkedSeries(expr).map(({ metric }) => metric.name)))
  const missing = metrics.map(({ name }) => name).filter(name => !shown.has(name))
  assert.deepEqual(missing, [], 'no panel shows these')
  for (const { title, gridPos } of panels)
    assert.ok(Number.isInteger(gridPos.w), `${title}: too many panels in its line`)
  const latencies = panels.map(({ title }) => title).filter(title => title.startsWith('Latency of '))
  const expected = ENDPOINT_NAMES.map(name => `Latency of /${name}`)
  assert.deepEqual(latencies, expected)
})

test('metrics.md lists every metric with its type and labels', () => {
  const row = /^\| `((?:powgate|process|nodejs)_\w+)` \| (\w+) \|([^|]*)\|/gm
  const rows = textOf('docs/reference/metrics.md').matchAll(row)
  const told = [...rows].map(
    ([, name, type, labels]) => `${name} ${type} ${labels!.replace(/[`,]/g, '').trim()}`,
  )
  const known = metrics.map(({ name, type, labels = [] }) => `${name} ${type} ${labels.join(' ')}`)
  const lacking = known.filter(line => !told.includes(line))
  assert.ok(lacking.length === 0, `metrics.md lacks ${lacking.join(', ')}`)
  assert.deepEqual(told.sort(), known.sort())
})

/** The dashboard for Grafana and the rules for Prometheus cover every metric, and query only metrics that /metrics has. */

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { ENDPOINT_NAMES } from '../../src/domain/endpoint.ts'
import { METRICS } from '../../src/metrics/table.ts'
import { call } from '../harness/http.ts'
import { PrometheusText } from '../harness/metrics.ts'
import { freePort } from '../harness/ports.ts'
import { TestService } from '../harness/service.ts'

interface Panel {
  readonly id: number
  readonly type: string
  readonly title: string
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number }
  readonly datasource?: unknown
  readonly fieldConfig?: { readonly defaults: { readonly unit?: string } }
  readonly targets?: readonly {
    readonly refId: string
    readonly expr: string
    readonly datasource: unknown
  }[]
}

const adminPort = String(await freePort())
const service = await TestService.start('embedded', { POWGATE_ADMIN_PORT: adminPort })
// One of each, so that every histogram and label is there.
await service.createSite()
const get = (path: string) => call(`http://127.0.0.1:${adminPort}${path}`)
await call(`${service.url}/challenge`)

const answer = await get('/grafana.json')
const dashboard = answer.json
const panels: Panel[] = dashboard.panels
const queries = panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr))
const rules = (await get('/alerts.yml')).text
const metrics = new PrometheusText((await get('/metrics')).text)

test('it is a dashboard of Grafana 10 or newer with a choice of data source and hosts', () => {
  assert.match(String(answer.headers['content-type']), /^application\/json/)
  assert.ok(dashboard.schemaVersion >= 38)
  const variables = dashboard.templating.list.map(
    ({ name, type }: { name: string; type: string }) => `${name}: ${type}`,
  )
  assert.deepEqual(variables, ['datasource: datasource', 'instance: query'])
})

test('every panel has a title, a unit and queries to the chosen data source, and a place of its own', () => {
  assert.ok(panels.length > 25)
  assert.equal(new Set(panels.map(({ id }) => id)).size, panels.length)
  const taken = new Set<string>()
  for (const { type, title, gridPos, fieldConfig, targets = [], datasource } of panels) {
    assert.ok(title.length > 0)
    for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++) {
      for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
        assert.ok(x < 24 && !taken.has(`${x} ${y}`), `${title} covers another panel`)
        taken.add(`${x} ${y}`)
      }
    }
    if (type === 'row') continue
    const source = { type: 'prometheus', uid: '$' + '{datasource}' }
    assert.ok(fieldConfig?.defaults.unit, title)
    assert.ok(targets.length > 0, title)
    for (const target of [{ datasource }, ...targets]) assert.deepEqual(target.datasource, source, title)
    assert.equal(new Set(targets.map(({ refId }) => refId)).size, targets.length, title)
  }
})

test('every endpoint has its latency, in one line', () => {
  const latencies = panels.filter(({ title }) => title.startsWith('Latency of '))
  assert.deepEqual(
    latencies.map(({ title }) => title),
    ENDPOINT_NAMES.map(name => `Latency of /${name}`),
  )
  assert.equal(new Set(latencies.map(({ gridPos }) => gridPos.y)).size, 1)
})

/** `{` and its labels, after a metric's name. */
const SELECTOR = /\b((?:powgate|process|nodejs)_\w+)\{([^}]*)\}/g

test('every query names a metric that /metrics has, with labels that it has', () => {
  const named = new Set<string>()
  for (const expr of queries) {
    for (const [, name] of expr.matchAll(/\b((?:powgate|process|nodejs)_\w+)/g)) named.add(name!)
    for (const [, name, matchers] of expr.matchAll(SELECTOR)) {
      const labels = labelsOf(name!)
      for (const [, label] of matchers!.matchAll(/(\w+)\s*(?:=~|!~|!=|=)/g))
        assert.ok(labels.has(label!) || label === 'instance', `${name} has no label ${label}: ${expr}`)
    }
  }
  for (const name of named) assert.ok(labelsOf(name).size >= 0)
  for (const [name] of rules.matchAll(/\bpowgate_\w+/g)) assert.ok(labelsOf(name).size >= 0)
  const families = [...metrics.families.keys()]
  const shown = families.filter(family => [...named].some(name => familyOf(name) === family))
  assert.deepEqual(
    families.filter(family => !shown.includes(family)),
    [],
    'all metrics are shown',
  )
})

test('every metric of the table is told, and monitoring.md lists it with its type and its labels', () => {
  const page = readFileSync(new URL('../../docs/monitoring.md', import.meta.url), 'utf8')
  const rows = [...page.matchAll(/^\| `((?:powgate|process|nodejs)_\w+)` \| (\w+) \|([^|]*)\|/gm)]
  const listed = (rows: Iterable<{ name: string; type: string | undefined }>) =>
    Array.from(rows, ({ name, type }) => `${name} ${type}`).sort()
  const inTable = listed(Object.values(METRICS))
  assert.deepEqual(listed(rows.map(([, name = '', type]) => ({ name, type }))), inTable)
  assert.deepEqual(listed(metrics.families.values()), inTable, 'all are told at /metrics')
  for (const [, name, , labels] of rows) {
    const described = [...labels!.matchAll(/`(\w+)`/g)].map(([, label]) => label)
    const told = metrics.samples(name!).flatMap(sample => Object.keys(sample.labels))
    assert.deepEqual(described.sort(), [...new Set(told)].filter(label => label !== 'le').sort(), name)
  }
})

test('counters and histograms are only looked at as rates, and labels grouped by exist', () => {
  for (const expr of queries) {
    for (const [, name, , range = ''] of expr.matchAll(
      /\b((?:powgate|process|nodejs)_\w+)\{([^}]*)\}(\[[^\]]*\])?/g,
    )) {
      const isGauge = metrics.families.get(familyOf(name!))!.type === 'gauge'
      if (isGauge) assert.equal(range, '', expr)
      else assert.match(range, /^\[\$__(rate_interval|range)\]$/, expr)
    }
    for (const [, grouped, inner] of expr.matchAll(/\bby \(([^)]*)\) \((.*)/g)) {
      const [name] = /\b(?:powgate|process|nodejs)_\w+/.exec(inner!)!
      for (const label of grouped!.split(', '))
        assert.ok(label === 'instance' || labelsOf(name).has(label), `${name} has no label ${label}: ${expr}`)
    }
    if (expr.includes('histogram_quantile'))
      assert.match(expr, /^histogram_quantile\(0\.\d+, sum by \(le\) \(rate\(/)
    assert.equal([...expr.matchAll(/\(/g)].length, [...expr.matchAll(/\)/g)].length, expr)
    assert.match(expr, /instance=~"\$instance"/)
  }
})

function familyOf(name: string): string {
  if (metrics.families.has(name)) return name
  const family = name.replace(/_(bucket|sum|count)$/, '')
  assert.ok(metrics.families.get(family)?.type === 'histogram', `/metrics has no ${name}`)
  return family
}

/** Of all samples of a metric; a metric without samples yet has those that its documentation names. */
function labelsOf(name: string): Set<string> {
  const samples = metrics.samples(familyOf(name)).filter(sample => sample.name === name)
  const labels = new Set(samples.flatMap(sample => Object.keys(sample.labels)))
  return samples.length === 0 ? new Set(['endpoint']) : labels
}

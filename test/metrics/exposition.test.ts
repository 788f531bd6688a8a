/**
 * The text of /metrics in cases that a running service does not show. The strict parser of such text refuses invalid text. A name in
 * Values is a key of METRICS, then the values of its labels, with spaces between.
 */

import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { SCORE_WEIGHTS } from '../../src/domain/score.ts'
import { exposition } from '../../src/metrics/exposition.ts'
import { METRICS, type Values } from '../../src/metrics/table.ts'
import { Totals } from '../../src/metrics/totals.ts'
import { PrometheusText } from '../harness/metrics.ts'

/** The text for workers with these values. */
function textOf(...workers: readonly Values[]): string {
  const totals = new Totals()
  const build = { version: '1.2.3', node: 'v22.0.0' }
  for (const [index, values] of workers.entries()) totals.take({ pid: undefined, build }, { values }, index)
  return exposition(totals.values())
}

test('without any worker it is well-formed, and says nothing of the store', () => {
  const metrics = new PrometheusText(textOf())
  assert.deepEqual([metrics.value('powgate_workers'), metrics.families.has('powgate_store_up')], [0, false])
})

test('names have HELP and TYPE, the unit last, and start with what they are about', () => {
  const { families } = new PrometheusText(textOf({}))
  for (const { name, help, type } of families.values()) {
    assert.match(name, /^(powgate|process|nodejs)_[a-z_]+$/)
    assert.match(help, /^[A-Z].{10,}\.$/, name)
    if (/duration|lag/.test(name)) assert.match(name, /_seconds$/)
    assert.doesNotMatch(name, /_(bits|milliseconds|minutes|kilobytes)(_|$)/) // as promtool has it: base units only
    if (type === 'counter') assert.match(name, /_total$/)
  }
})

test('every row of the table is named somewhere else, so that perhaps something counts it', () => {
  const src = new URL('../../src/', import.meta.url)
  const all = readdirSync(src, { recursive: true, encoding: 'utf8' })
    .filter(name => name.endsWith('.ts') && name !== 'metrics/table.ts')
    .map(name => readFileSync(new URL(name, src), 'utf8'))
    .join()
  for (const key of Object.keys(METRICS)) // named as `counts.key`, `key: value`, or `'key label'`
    assert.ok(new RegExp(`\\.${key}\\b|\\b${key}:|['\`]${key} `).test(all), `nothing counts ${key}`)
})

test('what is counted has its series from the start, so that its first increase is seen', () => {
  const metrics = new PrometheusText(textOf({}))
  for (const reason of [...Object.keys(SCORE_WEIGHTS), 'proof-wrong', 'ip-blocked', 'ip-not-allowed'])
    assert.equal(metrics.value('powgate_score_reasons_total', { reason }), 0)
  for (const endpoint of ['challenge', 'verify', 'verify-token'])
    assert.equal(metrics.value('powgate_requests_total', { endpoint, status: '200', outcome: 'ok' }), 0)
  for (const outcome of ['nonce-forgotten', 'nonce-from-future'])
    assert.equal(metrics.value('powgate_requests_total', { endpoint: 'verify', status: '400', outcome }), 0)
  assert.equal(metrics.value('powgate_worker_restarts_total', { cause: 'hang' }), 0)
})

test('a worker of a newer version may count what is not known here; what has other labels is left out', () => {
  const text = textOf({
    'requests new-endpoint 200 ok': 3,
    'requests too few': 1,
    'requests too many 200 ok': 1,
    'storeSeconds too 0.1': 1,
    'difficulty 18': 1, // as it was before it had the label `puzzle`
    'reasons newReason': 4,
    'newMetric a': 1,
  })
  const metrics = new PrometheusText(text)
  const labels = { endpoint: 'new-endpoint', status: '200', outcome: 'ok' }
  assert.equal(metrics.value('powgate_requests_total', labels), 3)
  assert.equal(metrics.value('powgate_score_reasons_total', { reason: 'newReason' }), 4)
  assert.doesNotMatch(text, /"too"|newMetric|puzzle="18"/)
})

test('label values are escaped, and what is infinite is a number', () => {
  const metrics = new PrometheusText(
    exposition({ 'build primary a"b\\c\nd v20': 1, 'openFilesMax primary': Infinity }),
  )
  const labels = { process: 'primary', version: 'a"b\\c\nd', node: 'v20' }
  assert.equal(metrics.value('powgate_build_info', labels), 1)
  assert.equal(metrics.value('process_max_fds', { process: 'primary' }), Infinity)
})

test('POWGATE_DEPLOYMENT: a label of every sample, with other labels or without', () => {
  const values = { workers: 2, 'restarts crash': 1, 'difficulty sha256 18': 1, 'difficulty sha256 sum': 18 }
  const lines = (deployment?: string) => new PrometheusText(exposition(values, deployment)).series
  const labelled = lines('staging-2.eu')
  assert.equal(labelled.length, lines().length)
  for (const series of labelled) assert.match(series, /[{,]deployment="staging-2\.eu"[,}]/)
})

test('processor time is the sum of all processes, in seconds', () => {
  const metrics = new PrometheusText(textOf({ cpu: 250_000 }, { cpu: 2 }))
  assert.equal(metrics.value('process_cpu_seconds_total'), 0.250002)
})

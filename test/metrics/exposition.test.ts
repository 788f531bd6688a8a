/** The text of /metrics in cases that a running service does not show. The strict parser of such text refuses invalid text. */

import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { SCORE_WEIGHTS } from '../../src/domain/score.ts'
import { exposition } from '../../src/metrics/exposition.ts'
import { METRICS, type Values } from '../../src/metrics/table.ts'
import { Totals } from '../../src/metrics/totals.ts'
import { PrometheusText } from '../harness/metrics.ts'

function textOf(...workers: readonly Values[]): string {
  const totals = new Totals()
  const build = { version: '1.2.3', node: 'v22.0.0' }
  for (const [index, values] of workers.entries()) totals.take({ pid: undefined, build }, { values }, index)
  totals.counts.restarts.at('hang').add(2)
  return exposition(totals.values())
}

test('without any worker it is well-formed, and says that nobody reaches the store', () => {
  const metrics = new PrometheusText(textOf())
  assert.deepEqual([metrics.value('powgate_workers'), metrics.value('powgate_store_up')], [0, 0])
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

test('every row of the table is counted, or set as a gauge, somewhere', () => {
  const src = new URL('../../src/', import.meta.url)
  const texts = readdirSync(src, { recursive: true, encoding: 'utf8' })
    .filter(name => name.endsWith('.ts') && name !== 'metrics/table.ts')
    .map(name => readFileSync(new URL(name, src), 'utf8'))
  for (const key of Object.keys(METRICS))
    assert.match(texts.join(), new RegExp(`\\.${key}\\b|\\b${key}:|['\`]${key} `))
})

test('what is counted has its series from the start, so that its first increase is seen', () => {
  const metrics = new PrometheusText(textOf({}))
  for (const reason of [...Object.keys(SCORE_WEIGHTS), 'proof-wrong', 'ip-blocked', 'ip-not-allowed'])
    assert.equal(metrics.value('powgate_score_reasons_total', { reason }), 0)
  for (const endpoint of ['challenge', 'verify', 'verify-token'])
    assert.equal(metrics.value('powgate_requests_total', { endpoint, status: '200', outcome: 'ok' }), 0)
  assert.equal(metrics.value('powgate_worker_restarts_total', { cause: 'hang' }), 2)
})

test('difficulties and scores as histograms', () => {
  const one = {
    ...{
      'difficulty sha256 16': 5,
      'difficulty sha256 18': 2,
      'difficulty sha256 28': 1,
      'difficulty sha256 sum': 144,
    },
    ...{ 'scores 0.09': 1, 'scores 0.49': 2, 'scores Infinity': 4, 'scores sum': 485 },
  }
  const metrics = new PrometheusText(
    textOf(one, { 'difficulty sha256 18': 1, 'difficulty sha256 Infinity': 1, 'difficulty sha256 sum': 49 }),
  )
  const below = (name: string, labels: object, ...bounds: string[]) =>
    bounds.map(le => metrics.value(`powgate_${name}_bucket`, { ...labels, le }))
  assert.deepEqual(
    below('challenge_difficulty', { puzzle: 'sha256' }, '16', '17', '18', '28', '+Inf'),
    [5, 5, 8, 9, 10],
  )
  assert.equal(
    metrics.value('powgate_challenge_difficulty_sum', { puzzle: 'sha256' }),
    5 * 16 + 3 * 18 + 28 + 31,
  )
  assert.deepEqual(below('verification_score', {}, '0.09', '0.39', '0.49', '0.99', '+Inf'), [1, 1, 3, 3, 7])
  assert.equal(metrics.value('powgate_verification_score_sum'), 4.85)
})

test('a worker of a newer version may count what is not known here; what has other labels is left out', () => {
  const text = textOf({
    'requests new-endpoint 200 ok': 3,
    'requests too few': 1,
    'requests too many 200 ok': 1,
    'storeSeconds too 0.1': 1,
    'difficulty 18': 1, // as before it had a label
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

const HEAD = '# HELP a_total About a.\n# TYPE a_total counter\n'
const HISTOGRAM = '# HELP h About h.\n# TYPE h histogram\n'
const buckets = (...counts: number[]) =>
  counts
    .map((count, index) => `h_bucket{le="${index === counts.length - 1 ? '+Inf' : index}"} ${count}\n`)
    .join('')

const BAD: Readonly<Record<string, string>> = {
  'no last line end': `${HEAD}a_total 1`,
  'a sample before its TYPE': '# HELP a_total x\na_total 1\n',
  'a sample without any head': 'a_total 1\n',
  'a sample below the head of another': `${HEAD}b_total 1\n`,
  'TYPE before HELP': '# TYPE a_total counter\n# HELP a_total x\na_total 1\n',
  'a metric twice': `${HEAD}a_total 1\n${HEAD}a_total{x="1"} 1\n`,
  'a series twice': `${HEAD}a_total{x="1",y="2"} 1\na_total{y="2",x="1"} 1\n`,
  'a label twice': `${HEAD}a_total{x="1",x="2"} 1\n`,
  'a label without quotes': `${HEAD}a_total{x=1} 1\n`,
  'an unknown escape': `${HEAD}a_total{x="\\t"} 1\n`,
  'an open quote': `${HEAD}a_total{x="1} 1\n`,
  'no number': `${HEAD}a_total one\n`,
  'more than a number': `${HEAD}a_total 1 2 3\n`,
  'a negative counter': `${HEAD}a_total -1\n`,
  'a counter without _total': '# HELP a x\n# TYPE a counter\na 1\n',
  'a gauge with _total': '# HELP a_total x\n# TYPE a_total gauge\na_total 1\n',
  'no samples': HEAD,
  'buckets that fall': `${HISTOGRAM}${buckets(2, 1, 3)}h_sum 1\nh_count 3\n`,
  'no bucket +Inf': `${HISTOGRAM}h_bucket{le="1"} 1\nh_sum 1\nh_count 1\n`,
  'a count that is not the last bucket': `${HISTOGRAM}${buckets(1, 2)}h_sum 1\nh_count 3\n`,
  'a histogram without sum': `${HISTOGRAM}${buckets(1, 2)}h_count 2\n`,
  'bounds that do not ascend': `${HISTOGRAM}h_bucket{le="2"} 1\nh_bucket{le="1"} 1\nh_bucket{le="+Inf"} 1\nh_sum 1\nh_count 1\n`,
}

test('the reader refuses text that Prometheus would', () => {
  for (const [what, text] of Object.entries(BAD)) assert.throws(() => new PrometheusText(text), what)
})

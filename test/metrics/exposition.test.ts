/** How totals become text, beyond what a running service shows. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SCORE_WEIGHTS } from '../../src/domain/score.ts'
import { exposition } from '../../src/metrics/exposition.ts'
import type { StatsSnapshot } from '../../src/metrics/snapshot.ts'
import { Totals } from '../../src/metrics/totals.ts'
import { EMPTY_STATS, PrometheusText } from '../harness/metrics.ts'

async function textOf(snapshots: readonly Partial<StatsSnapshot>[]) {
  const totals = new Totals()
  snapshots.forEach((snapshot, index) => {
    totals.take(String(index), { ...EMPTY_STATS, ...snapshot }, index)
  })
  return exposition({
    total: totals.current(),
    workers: totals.workers(),
    restarts: { crash: 1, hang: 2, roll: 3 },
    primary: {
      pid: process.pid,
      residentBytes: 7,
      heapBytes: 5,
      cpuMicroseconds: 1_500_000,
      startedAtSeconds: 1e9,
    },
    pidOf: () => undefined, // gone meanwhile
    settings: undefined,
    build: { version: '1.2.3', node: 'v20.0.0' },
  })
}

test('without any worker it is well-formed, and says that nobody reaches the store', async () => {
  const metrics = new PrometheusText(await textOf([]))
  assert.deepEqual([metrics.value('powgate_workers'), metrics.value('powgate_store_up')], [0, 0])
})

test('names have HELP and TYPE, the unit last, and start with what they are about', async () => {
  const { families } = new PrometheusText(await textOf([{}]))
  for (const { name, help, type } of families.values()) {
    assert.match(name, /^(powgate|process|nodejs)_[a-z_]+$/)
    assert.match(help, /^[A-Z].{10,}\.$/, name)
    if (/duration|lag/.test(name)) assert.match(name, /_seconds$/)
    assert.doesNotMatch(name, /_(bits|milliseconds|minutes|kilobytes)(_|$)/) // as promtool has it: base units only
    if (type === 'counter') assert.match(name, /_total$/)
  }
})

test('what is counted has its series from the start, so that its first increase is seen', async () => {
  const metrics = new PrometheusText(await textOf([{}]))
  for (const reason of [...Object.keys(SCORE_WEIGHTS), 'proof-wrong', 'ip-blocked', 'ip-not-allowed'])
    assert.equal(metrics.value('powgate_score_reasons_total', { reason }), 0)
  for (const endpoint of ['challenge', 'verify', 'verify-token'])
    assert.equal(metrics.value('powgate_requests_total', { endpoint, status: '200', outcome: 'ok' }), 0)
  assert.equal(metrics.value('powgate_worker_restarts_total', { cause: 'hang' }), 2)
})

test('difficulties and scores as histograms', async () => {
  const metrics = new PrometheusText(
    await textOf([
      { difficulties: { 16: 5, 18: 2, 28: 1 }, scores: [1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 4], scoreSum: 4.85 },
      { difficulties: { 18: 1, 31: 1 }, scores: [], scoreSum: 0 },
    ]),
  )
  const bits = (le: string) => metrics.value('powgate_challenge_difficulty_bucket', { le })
  assert.deepEqual([bits('16'), bits('17'), bits('18'), bits('28'), bits('+Inf')], [5, 5, 8, 9, 10])
  assert.equal(metrics.value('powgate_challenge_difficulty_sum'), 5 * 16 + 3 * 18 + 28 + 31)
  const score = (le: string) => metrics.value('powgate_verification_score_bucket', { le })
  assert.deepEqual(
    [score('0.09'), score('0.39'), score('0.49'), score('0.99'), score('+Inf')],
    [1, 1, 3, 3, 7],
  )
  assert.equal(metrics.value('powgate_verification_score_sum'), 4.85)
})

test('a worker of a newer version may count what is not known here; what is no name is left out', async () => {
  const metrics = new PrometheusText(
    await textOf([
      {
        answers: {
          'new-endpoint 200 ok': 3,
          'verify 400 new-reason': 2,
          'a "quoted" 200 ok': 1,
          'too few': 1,
          'line\nbreak 200 ok': 1,
        },
        reasons: { newReason: 4, [`long${'x'.repeat(100)}`]: 1 },
      },
    ]),
  )
  const labels = { endpoint: 'new-endpoint', status: '200', outcome: 'ok' }
  assert.equal(metrics.value('powgate_requests_total', labels), 3)
  assert.equal(metrics.value('powgate_score_reasons_total', { reason: 'newReason' }), 4)
  assert.equal(metrics.series.filter(series => /quoted|too|line|long/.test(series)).length, 0)
})

test('processor time is the sum of all processes, also of those that have gone', async () => {
  const metrics = new PrometheusText(await textOf([{ cpuMicroseconds: 250_000 }, { cpuMicroseconds: 2 }]))
  assert.equal(metrics.value('process_cpu_seconds_total'), 1.750002)
  assert.deepEqual(
    metrics.samples('process_open_fds').map(({ labels }) => labels.process),
    ['primary'],
  )
})

test('site keys are no label', async () => {
  const site = { challenges: 1, passed: 0, failed: 0, redeemed: 0, refused: { 'nonce-used': 1 } }
  const text = await textOf([{ sites: { site_abc: { ...site, reasons: {}, difficulties: {}, scores: [] } } }])
  assert.doesNotMatch(text, /site_abc/)
})

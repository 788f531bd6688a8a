/** The strict reader of Prometheus' text format, which the tests of /metrics rely on, does refuse. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PrometheusText } from '../harness/metrics.ts'

const HEAD = '# HELP a_total About a.\n# TYPE a_total counter\n'
const HISTOGRAM = '# HELP h About h.\n# TYPE h histogram\n'
const buckets = (...counts: number[]) =>
  counts
    .map((count, index) => `h_bucket{le="${index === counts.length - 1 ? '+Inf' : index}"} ${count}\n`)
    .join('')

test('reads names, labels, escapes and values', () => {
  const text = new PrometheusText(
    `${HEAD}a_total{x="1",y="q\\"b\\\\n\\nl"} 3\na_total 1e3\n\n${HISTOGRAM}${buckets(1, 2, 2)}h_sum 0.5\nh_count 2\n`,
  )
  assert.equal(text.value('a_total', { y: 'q"b\\n\nl', x: '1' }), 3)
  assert.equal(text.value('a_total'), 1000)
  assert.equal(text.value('h_bucket', { le: '+Inf' }), 2)
  assert.equal(text.series.length, 7)
})

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

for (const [what, text] of Object.entries(BAD)) {
  test(`refuses ${what}`, () => {
    assert.throws(() => new PrometheusText(text))
  })
}

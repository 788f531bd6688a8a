/**
 * A strict parser of Prometheus' text format. It requires one HELP and one TYPE before the samples of a metric, and samples
 * together. Names, labels and escapes must be valid, no series may occur twice, counters end in _total, and histograms add
 * up.
 */

import assert from 'node:assert/strict'

type Labels = Readonly<Record<string, string>>

interface Sample {
  /** With its suffix, if any. */
  readonly name: string
  readonly labels: Labels
  readonly value: number
}

interface Family {
  readonly name: string
  readonly help: string
  type: string | undefined
  readonly samples: Sample[]
}

const METRIC_NAME = /^[a-zA-Z_:][a-zA-Z0-9_:]*/
const LABEL_NAME = /^[a-zA-Z_][a-zA-Z0-9_]*/
const NUMBER = /^(?:[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|\+Inf|-Inf|NaN)$/
const HISTOGRAM_SUFFIXES = ['_bucket', '_sum', '_count']

export class PrometheusText {
  readonly families: ReadonlyMap<string, Family>
  readonly #values = new Map<string, number>()

  /** Throws at the first violation of the format. */
  constructor(text: string) {
    assert.ok(text.endsWith('\n'), 'the last line has no end')
    assert.ok(!text.includes('\r'))
    this.families = readFamilies(text)
    for (const family of this.families.values()) {
      for (const { name, labels, value } of family.samples) {
        const series = seriesOf(name, labels)
        assert.ok(!this.#values.has(series), `${series} is there twice`)
        this.#values.set(series, value)
      }
      checkFamily(family)
    }
  }

  /** Names with their labels, in alphabetical order. */
  get series(): string[] {
    return [...this.#values.keys()].sort()
  }

  value(name: string, labels: Labels = {}): number {
    const value = this.#values.get(seriesOf(name, labels))
    assert.ok(value !== undefined, `there is no ${seriesOf(name, labels)}`)
    return value
  }

  /** Values that never decrease, by series: counters, and histograms with their buckets. */
  get counts(): ReadonlyMap<string, number> {
    const families = [...this.families.values()].filter(({ type }) => type !== 'gauge')
    return new Map(
      families.flatMap(({ samples }) =>
        samples.map(({ name, labels, value }) => [seriesOf(name, labels), value] as const),
      ),
    )
  }

  /** Samples of one metric. */
  samples(name: string): readonly Sample[] {
    const family = this.families.get(name)
    assert.ok(family !== undefined, `there is no ${name}`)
    return family.samples
  }
}

export function seriesOf(name: string, labels: Labels): string {
  const parts = Object.keys(labels).sort()
  return `${name}{${parts.map(label => `${label}=${JSON.stringify(labels[label])}`).join(',')}}`
}

function readFamilies(text: string): Map<string, Family> {
  const families = new Map<string, Family>()
  let current: Family | undefined
  for (const line of text.split('\n')) {
    if (line === '') continue
    const [, keyword, name, rest] = /^# (HELP|TYPE) (\S+) (.+)$/.exec(line) ?? []
    if (keyword === 'HELP') {
      assert.equal(METRIC_NAME.exec(name!)?.[0], name)
      assert.ok(!families.has(name!), `${name} is there twice`)
      current = { name: name!, help: unescaped(rest!, ''), type: undefined, samples: [] }
      families.set(name!, current)
    } else if (keyword === 'TYPE') {
      assert.ok(current?.name === name && current?.type === undefined, `TYPE of ${name} is misplaced`)
      assert.match(rest!, /^(counter|gauge|histogram)$/)
      current!.type = rest
    } else {
      assert.ok(!line.startsWith('#'), line)
      assert.ok(current?.type !== undefined, `a sample before HELP and TYPE: ${line}`)
      current!.samples.push(readSample(line, current!))
    }
  }
  return families
}

function readSample(line: string, { name: familyName, type }: Family): Sample {
  const name = METRIC_NAME.exec(line)?.[0]
  assert.ok(name !== undefined, line)
  const names = type === 'histogram' ? HISTOGRAM_SUFFIXES.map(suffix => familyName + suffix) : [familyName]
  assert.ok(names.includes(name), `${name} below the HELP and TYPE of ${familyName}`)
  const { labels, rest } = readLabels(line.slice(name.length))
  assert.match(rest, /^ \S+$/, line)
  const text = rest.slice(1)
  assert.match(text, NUMBER, line)
  return { name, labels, value: Number(text.replace('Inf', 'Infinity')) }
}

function readLabels(text: string): { labels: Labels; rest: string } {
  if (!text.startsWith('{')) return { labels: {}, rest: text }
  const labels: Record<string, string> = {}
  let rest = text.slice(1)
  while (!rest.startsWith('}')) {
    const label = LABEL_NAME.exec(rest)?.[0]
    assert.ok(label !== undefined && !label.startsWith('__') && !(label in labels), text)
    rest = rest.slice(label.length)
    const quoted = /^="((?:[^"\\]|\\.)*)"/.exec(rest)
    assert.ok(quoted !== null, text)
    labels[label] = unescaped(quoted[1]!, '"')
    rest = rest.slice(quoted[0].length)
    if (rest.startsWith(',')) rest = rest.slice(1)
    else assert.ok(rest.startsWith('}'), text)
  }
  return { labels, rest: rest.slice(1) }
}

/** Only `\\`, `\n` and, in labels, `\"` are escapes. */
function unescaped(text: string, quote: '' | '"'): string {
  return text.replace(/\\(.?)/gs, (_, escaped: string) => {
    if (escaped === '\\') return '\\'
    if (escaped === 'n') return '\n'
    assert.ok(escaped !== '' && escaped === quote, `not an escape: \\${escaped}`)
    return escaped
  })
}

function checkFamily(family: Family): void {
  const { name, type, samples } = family
  assert.ok(samples.length > 0, `${name} has no samples`)
  if (type === 'counter') {
    assert.match(name, /_total$/)
    for (const { value } of samples) assert.ok(value >= 0, name)
  } else {
    assert.doesNotMatch(name, /_total$/)
  }
  if (type === 'histogram') checkHistogram(family)
}

function checkHistogram({ name, samples }: Family): void {
  const bySeries = new Map<string, Sample[]>()
  for (const sample of samples) {
    const { le: _, ...labels } = sample.labels
    const key = seriesOf(name, labels)
    bySeries.set(key, [...(bySeries.get(key) ?? []), sample])
  }
  for (const [series, ofSeries] of bySeries) {
    const buckets = ofSeries.filter(sample => sample.name === `${name}_bucket`)
    const bounds = buckets.map(({ labels }) => Number(labels.le!.replace('Inf', 'Infinity')))
    assert.equal(bounds.at(-1), Number.POSITIVE_INFINITY, `${series} has no bucket +Inf`)
    bounds.reduce((below, bound) => {
      assert.ok(bound > below, `${series}: bounds do not ascend`)
      return bound
    })
    buckets.reduce((below, { value }) => {
      assert.ok(value >= below, `${series}: buckets are not cumulative`)
      return value
    }, 0)
    const [sums, counts] = ['_sum', '_count'].map(suffix =>
      ofSeries.filter(sample => sample.name === name + suffix),
    )
    assert.equal(sums!.length, 1, `${series}_sum`)
    assert.deepEqual(
      counts!.map(({ value }) => value),
      [buckets.at(-1)!.value],
      `${series}_count is not its bucket +Inf`,
    )
  }
}

/** Metrics of a service under test, and a strict parser of Prometheus' text format. */

import assert from 'node:assert/strict'
import { call } from './http.ts'
import { freePort } from './ports.ts'
import { type StoreKind, TestService } from './service.ts'

export type Observed = Awaited<ReturnType<typeof startObserved>>

/** A service with an admin port, whose metrics `scrape` reads. Ends with the test file. */
export async function startObserved(kind: StoreKind, env: Record<string, string> = {}) {
  const adminPort = await freePort()
  const service = await TestService.start(kind, { ...env, POWGATE_ADMIN_PORT: String(adminPort) })
  const adminUrl = `http://127.0.0.1:${adminPort}`
  return { service, adminUrl, scrape: () => scrape(adminUrl) }
}

/** The sum over all workers. */
async function scrape(adminUrl: string): Promise<PrometheusText> {
  const answer = await call(`${adminUrl}/metrics`)
  assert.equal(answer.status, 200)
  assert.equal(answer.headers['content-type'], 'text/plain; version=0.0.4; charset=utf-8')
  return new PrometheusText(answer.text)
}

/** The growth of each counter and bucket; unchanged ones are left out, a decrease is negative. */
export function growth(before: PrometheusText, after: PrometheusText): Map<string, number> {
  const grown = new Map<string, number>()
  for (const series of new Set([...before.counts.keys(), ...after.counts.keys()])) {
    const change = (after.counts.get(series) ?? 0) - (before.counts.get(series) ?? 0)
    if (change !== 0) grown.set(series, change)
  }
  return grown
}

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

const NAME = '[a-zA-Z_:][a-zA-Z0-9_:]*'
const HEAD = new RegExp(`^# (HELP|TYPE) (${NAME}) (.+)$`)
const SAMPLE = new RegExp(`^(${NAME})(?:\\{(.*)\\})? (\\S+)$`)
/** Only `\\`, `\n` and, in labels, `\"` are escapes, which JSON has too. */
const LABEL = /((?!__)[a-zA-Z_][a-zA-Z0-9_]*)=("(?:[^"\\]|\\[\\n"])*")(?:,|$)/y
const HELP = /^(?:[^\\]|\\[\\n])+$/
const NUMBER = /^(?:[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|\+Inf|-Inf|NaN)$/
const SUFFIXES: Readonly<Record<string, readonly string[]>> = {
  counter: [''],
  gauge: [''],
  histogram: ['_bucket', '_sum', '_count'],
}
const numberOf = (text: string) => Number(text.replace('Inf', 'Infinity'))

/**
 * One HELP and one TYPE must come before the samples of a metric, and its samples must be together. Names, labels and escapes
 * must be valid, no series may occur twice, counters end in _total, and histograms add up.
 */
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
    const samples = families.flatMap(family => family.samples)
    return new Map(samples.map(({ name, labels, value }) => [seriesOf(name, labels), value]))
  }

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
  for (const line of text.split('\n').filter(line => line !== '')) {
    const [, keyword, name, rest] = HEAD.exec(line) ?? []
    if (keyword === 'HELP') {
      assert.ok(!families.has(name!) && HELP.test(rest!), line)
      current = { name: name!, help: rest!, type: undefined, samples: [] }
      families.set(name!, current)
    } else if (keyword === 'TYPE') {
      assert.ok(current?.name === name && current?.type === undefined && rest! in SUFFIXES, line)
      current!.type = rest
    } else {
      assert.ok(current?.type !== undefined, `a sample before HELP and TYPE: ${line}`)
      const [, sample, labels = '', value = ''] = SAMPLE.exec(line) ?? []
      const names = SUFFIXES[current!.type!]!.map(suffix => current!.name + suffix)
      assert.ok(
        names.includes(sample!) && NUMBER.test(value),
        `below HELP and TYPE of ${current!.name}: ${line}`,
      )
      current!.samples.push({ name: sample!, labels: readLabels(labels), value: numberOf(value) })
    }
  }
  return families
}

function readLabels(text: string): Labels {
  const labels: Record<string, string> = {}
  for (LABEL.lastIndex = 0; LABEL.lastIndex < text.length; ) {
    const [, label = '', quoted = ''] = LABEL.exec(text) ?? []
    assert.ok(label !== '' && !(label in labels), text)
    labels[label] = JSON.parse(quoted)
  }
  return labels
}

function checkFamily(family: Family): void {
  const { name, type, samples } = family
  assert.ok(samples.length > 0, `${name} has no samples`)
  assert.equal(name.endsWith('_total'), type === 'counter', `${name} is a ${type}`)
  if (type === 'counter') for (const { value } of samples) assert.ok(value >= 0, name)
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
    const bounds = buckets.map(({ labels }) => numberOf(labels.le!))
    assert.equal(bounds.at(-1), Number.POSITIVE_INFINITY, `${series} has no bucket +Inf`)
    for (const [index, { value }] of buckets.entries()) {
      assert.ok(index === 0 || bounds[index]! > bounds[index - 1]!, `${series}: bounds do not ascend`)
      assert.ok(value >= (buckets[index - 1]?.value ?? 0), `${series}: buckets are not cumulative`)
    }
    const valuesOf = (suffix: string) =>
      ofSeries.filter(sample => sample.name === name + suffix).map(({ value }) => value)
    assert.equal(valuesOf('_sum').length, 1, `${series}_sum`)
    assert.deepEqual(valuesOf('_count'), [buckets.at(-1)!.value], `${series}_count is not its bucket +Inf`)
  }
}

/**
 * Metrics in Prometheus' text format, version 0.0.4.
 * https://prometheus.io/docs/instrumenting/exposition_formats/#text-format-details
 */

import { keyOf, type Metric, ROWS, type Values } from './table.ts'

export const CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8'

const ZEROS = zeros()

/** Leaves out metrics without numbers, and numbers without a metric. @param deployment a label of every sample; empty for none */
export function exposition(values: Values, deployment = ''): string {
  const withZeros = { ...ZEROS, ...values }
  const flatNames = new Map<string, string[]>([...ROWS.keys()].map(key => [key, []]))
  for (const flatName in withZeros) flatNames.get(keyOf(flatName))?.push(flatName)
  let text = ''
  for (const [key, metric] of ROWS) {
    const { name, help, type } = metric
    const samplesOf = type === 'histogram' ? histogramSamples : plainSamples
    const samples = samplesOf(metric, flatNames.get(key)!, withZeros)
    if (samples !== '')
      text += `# HELP ${name} ${help.replace(/[\\\n]/g, escaped)}\n# TYPE ${name} ${type}\n${samples}`
  }
  if (deployment === '') return text
  // A deployment's name has only word characters, points and hyphens, so nothing is escaped. Only samples begin with a word.
  return text.replace(
    /^(\w+)(\{?)/gm,
    (_, name, brace) => `${name}{deployment="${deployment}"${brace === '' ? '}' : ','}`,
  )
}

/** Returns a 0 for each series of `fromStart`, and for counters and histograms without labels. */
function zeros(): Values {
  const values: Values = {}
  for (const [key, { type, labels, fromStart = [] }] of ROWS) {
    if (type === 'gauge') continue
    const series = labels === undefined ? [key] : fromStart.map(labelValues => `${key} ${labelValues}`)
    for (const name of series) values[type === 'histogram' ? `${name} sum` : name] = 0
  }
  return values
}

function plainSamples(
  { name, labels = [], scale = 1 }: Metric,
  flatNames: readonly string[],
  values: Values,
): string {
  return flatNames
    .map(flatName => sample(name, labels, flatName.split(' ').slice(1), values[flatName]! / scale))
    .join('')
}

function histogramSamples(
  { name, labels = [], bounds = [], scale = 1 }: Metric,
  flatNames: readonly string[],
  values: Values,
): string {
  let text = ''
  // The last word of a flat name is a bucket's bound, or `sum`.
  for (const series of new Set(flatNames.map(flatName => flatName.slice(0, flatName.lastIndexOf(' '))))) {
    const labelValues = series.split(' ').slice(1)
    let cumulative = 0
    for (const bound of [...bounds, Infinity]) {
      cumulative += values[`${series} ${bound}`] ?? 0
      text += sample(`${name}_bucket`, [...labels, 'le'], [...labelValues, textOf(bound)], cumulative)
    }
    text += sample(`${name}_sum`, labels, labelValues, (values[`${series} sum`] ?? 0) / scale)
    text += sample(`${name}_count`, labels, labelValues, cumulative)
  }
  return text
}

/** @returns '' if the number of values is wrong, because a worker of another version has other labels */
function sample(name: string, labels: readonly string[], values: readonly string[], value: number): string {
  if (labels.length !== values.length) return ''
  const pairs = labels.map((label, index) => `${label}="${values[index]!.replace(/[\\\n"]/g, escaped)}"`)
  return `${name}${pairs.length === 0 ? '' : `{${pairs.join(',')}}`} ${textOf(value)}\n`
}

function escaped(character: string): string {
  return character === '\n' ? '\\n' : `\\${character}`
}

function textOf(value: number): string {
  return value === Infinity ? '+Inf' : String(value)
}

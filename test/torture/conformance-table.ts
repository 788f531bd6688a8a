/** The table of requests that servers parse in different ways, as in docs/measurements.md. */

import { type Row, SECTIONS, WAYS } from './conformance-rows.ts'

const HEADINGS = [
  'request',
  'powgate, from a visitor',
  'powgate, from a trusted proxy',
  'behind nginx',
  'behind HAProxy',
]

/** Markdown; requests with the same results everywhere share a line. */
export function conformanceTable(): string {
  const lines = [HEADINGS, HEADINGS.map(() => '---')].map(asLine)
  for (const { title, rows } of SECTIONS) {
    lines.push(asLine([`**${title}**`, '', '', '', '']))
    for (const [fates, abouts] of byFates(rows))
      lines.push(asLine([abouts.join('; '), ...fates.split(' | ')]))
  }
  return lines.join('\n')
}

function byFates(rows: readonly Row[]): Map<string, string[]> {
  const groups = new Map<string, string[]>()
  for (const { about, fates } of rows) {
    const key = WAYS.map(way => fates[way]).join(' | ')
    const group = groups.get(key)
    if (group === undefined) groups.set(key, [about])
    else group.push(about)
  }
  return groups
}

function asLine(cells: readonly string[]): string {
  return `| ${cells.join(' | ')} |`
}

/** How commands print: one JSON value, or text. run.ts prints errors to stderr. */

import type { FieldChange } from '../domain/audit.ts'

/** Strangers' text could deceive a terminal's reader with these. */
const UNPRINTABLE = /[\p{Cc}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]/gu

export function printable(line: string): string {
  return line.replace(UNPRINTABLE, '?')
}

/** @param indent without it, one line */
export function printJson(value: unknown, indent?: number): void {
  const escaped = (character: string) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
  const text = JSON.stringify(value, undefined, indent)
  process.stdout.write(`${text.replace(UNPRINTABLE, found => (found === '\n' ? found : escaped(found)))}\n`)
}

export function printLine(...lines: readonly string[]): void {
  process.stdout.write(lines.map(line => `${printable(line)}\n`).join(''))
}

/** Two columns. */
export function printFields(fields: readonly (readonly [name: string, value: string])[]): void {
  const width = Math.max(...fields.map(([name]) => name.length))
  for (const [name, value] of fields) printLine(`  ${name.padEnd(width)}  ${value}`)
}

export function printTable(head: readonly string[], rows: readonly (readonly string[])[]): void {
  const table = [head.map(title => title.toUpperCase()), ...rows]
  const widths = head.map((_, column) => Math.max(...table.map(row => row[column]!.length)))
  for (const row of table) {
    printLine(
      row
        .map((cell, column) => cell.padEnd(widths[column]!))
        .join('  ')
        .trimEnd(),
    )
  }
}

/** UTC, to the second. */
export function dateText(unixMs: number): string {
  return new Date(unixMs).toISOString().replace(/\.\d+Z$/, 'Z')
}

/** @param isNew there is no earlier value */
export function printChanges(changes: readonly FieldChange[], isNew: boolean): void {
  for (const { field, from, to } of changes) {
    printLine(`    ${field}: ${isNew ? '' : `${valueText(from)} -> `}${valueText(to)}`)
  }
}

export function valueText(value: unknown): string {
  if (value === null) return '-'
  if (Array.isArray(value)) return `[${value.join(', ')}]`
  return typeof value === 'string' ? value : JSON.stringify(value)
}

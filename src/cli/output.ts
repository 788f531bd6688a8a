/** Prints lines, tables and JSON on standard output, and reports an output that cannot be written. */

import { fstatSync, statSync, writeFileSync } from 'node:fs'
import type { FieldChange } from '../domain/audit.ts'
import { OperatorError } from '../words/errors.ts'
import { systemErrorText } from '../words/system-error.ts'

/** Control characters in visitors' text could change what a terminal shows. */
const UNPRINTABLE = /[\p{Cc}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]/gu

export function printable(line: string): string {
  return line.replace(UNPRINTABLE, '?')
}

/** Writes the whole text. Node.js' stream is not used for a file, because it drops the rest of a write that a full disk cuts short. */
export function print(text: string): void {
  if (!fstatSync(1).isFile()) process.stdout.write(text)
  else
    try {
      writeFileSync(1, text)
    } catch (error) {
      process.stdout.emit('error', error) // as the stream would: main.ts reports it
    }
}

/** @param indent spaces a level; without it, all is on one line */
export function printJson(value: unknown, indent?: number): void {
  const escaped = (character: string) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
  const text = JSON.stringify(value, undefined, indent)
  print(`${text.replace(UNPRINTABLE, found => (found === '\n' ? found : escaped(found)))}\n`)
}

export function printLine(...lines: readonly string[]): void {
  print(lines.map(line => `${printable(line)}\n`).join(''))
}

let textIfLost: string | undefined

/** @param text says what the command has done: `lostOutputText` ends with it if the output that follows cannot be written */
export function sayIfOutputIsLost(text: string): void {
  textIfLost = text
}

/** @returns undefined if nothing is lost: the reader, such as `head`, needs no more and has closed the pipe */
export function lostOutputText(error: NodeJS.ErrnoException): string | undefined {
  if (textIfLost === undefined && error.code === 'EPIPE') return undefined
  const cause = error.code === 'EPIPE' ? 'its reader has gone' : systemErrorText(error)
  return `The output cannot be written (${cause}).${textIfLost === undefined ? '' : ` ${textIfLost}`}`
}

/** Called before an API key is made, which only the output shows. @throws OperatorError if the output goes nowhere */
export function requireOutput(): void {
  // Node.js opens /dev/null in place of an output that is closed.
  if (fstatSync(1).rdev === statSync('/dev/null').rdev)
    throw new OperatorError(
      'standard output is closed or /dev/null: the API key would be lost. Nothing was made',
    )
}

export type Pair = readonly [name: string, value: string]

const widest = (texts: readonly string[]) => texts.reduce((most, { length }) => Math.max(most, length), 0)

export function inColumns(pairs: readonly Pair[]): string[] {
  const width = widest(pairs.map(([name]) => name))
  return pairs.map(([name, value]) => `  ${name.padEnd(width)}  ${value}`)
}

export function printPairs(pairs: readonly Pair[]): void {
  printLine(...inColumns(pairs))
}

export function printTable(head: readonly string[], rows: readonly (readonly string[])[]): void {
  const table = [head.map(title => title.toUpperCase()), ...rows]
  const widths = head.map((_, column) => widest(table.map(row => row[column]!)))
  for (const row of table) {
    const cells = row.map((cell, column) => cell.padEnd(widths[column]!))
    printLine(cells.join('  ').trimEnd())
  }
}

/** UTC, to the second; `-` for what is no time, which Redis and older files of sites may have. */
export function dateText(unixMs: number): string {
  const date = new Date(unixMs)
  return Number.isNaN(date.getTime()) ? '-' : date.toISOString().replace(/\.\d+Z$/, 'Z')
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

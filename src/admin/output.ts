/** How the commands print: one JSON value on one line, or text for people. Problems go to stderr, in cli.ts. */

export function printJson(value: unknown): void {
  process.stdout.write(`${JSON.stringify(value)}\n`)
}

export function printLine(text: string): void {
  process.stdout.write(`${text}\n`)
}

/** Names and values, the values in one column. */
export function printFields(fields: readonly (readonly [name: string, value: string])[]): void {
  const width = Math.max(...fields.map(([name]) => name.length))
  for (const [name, value] of fields) printLine(`  ${name.padEnd(width)}  ${value}`)
}

/** Rows in columns, below a line of capitals. */
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
export function timeText(unixMs: number): string {
  return new Date(unixMs).toISOString().replace(/\.\d+Z$/, 'Z')
}

/** What changed, as people read it. */

import { printLine } from '../cli/output.ts'
import type { FieldChange } from '../domain/audit.ts'

/** @param isNew there is nothing to compare with */
export function printChanges(changes: readonly FieldChange[], isNew: boolean): void {
  for (const { field, from, to } of changes) {
    printLine(`    ${field}: ${isNew ? '' : `${valueText(from)} -> `}${valueText(to)}`)
  }
}

function valueText(value: unknown): string {
  if (value === null) return '-'
  if (Array.isArray(value)) return `[${value.join(', ')}]`
  return typeof value === 'string' ? value : JSON.stringify(value)
}

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { conformanceTable } from '../torture/conformance-table.ts'

const PAGE = readFileSync(new URL('../../docs/measurements.md', import.meta.url), 'utf8')

test('measurements.md tells what becomes of requests that servers read in different ways, as the torture suite sees it', () => {
  const table = conformanceTable()
  assert.ok(PAGE.includes(`\n${table}\n`), `measurements.md has another table than this one:\n${table}`)
})

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { conformanceTable } from '../torture/conformance-table.ts'

const README = readFileSync(new URL('../../README.md', import.meta.url), 'utf8')

test('the README tells what becomes of requests that servers read in different ways, as the torture suite sees it', () => {
  const table = conformanceTable()
  assert.ok(README.includes(`\n${table}\n`), `the README has another table than this one:\n${table}`)
})

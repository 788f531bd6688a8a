/** Processes that write while another opens the same files: nothing that was committed may be lost. */

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'

const run = promisify(execFile)
const CHILD = new URL('opener.ts', import.meta.url).pathname
const SECONDS = 5
/** With fewer it would show nothing. */
const OPENINGS_MIN = 100
const COMMITS_MIN = 1000

test('embedded: no transaction is lost while another process opens the files', async t => {
  const dataDir = mkdtempSync(join(tmpdir(), 'powgate-openers-'))
  mkdirSync(join(dataDir, 'state'))
  t.after(() => rmSync(dataDir, { recursive: true, force: true }))
  const child = async (what: 'write' | 'open', name: string) => {
    const { stdout } = await run(process.execPath, [
      '--import',
      'tsx',
      CHILD,
      what,
      dataDir,
      name,
      String(SECONDS),
    ])
    assert.match(stdout, /^\d+\n$/)
    return Number(stdout)
  }
  const [first, second, openings] = await Promise.all([
    child('write', 'first'),
    child('write', 'second'),
    child('open', 'opener'),
  ])
  t.diagnostic(`${first! + second!} transactions, ${openings} openings`)
  assert.ok(openings! >= OPENINGS_MIN)
  assert.ok(first! + second! >= COMMITS_MIN)
})

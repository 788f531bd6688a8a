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
/** With fewer it would show nothing. Each process goes on until it has done that, however busy the machine is. */
const OPENINGS = 100
const COMMITS = 500
const DEADLINE_MS = 240_000

test('embedded: no transaction is lost while another process opens the files', async t => {
  const dataDir = mkdtempSync(join(tmpdir(), 'powgate-openers-'))
  mkdirSync(join(dataDir, 'state'))
  t.after(() => rmSync(dataDir, { recursive: true, force: true }))
  const child = async (what: 'write' | 'open', name: string) => {
    const count = String(what === 'write' ? COMMITS : OPENINGS)
    const args = ['--import', 'tsx', CHILD, what, dataDir, name, count]
    const { stdout } = await run(process.execPath, args, { timeout: DEADLINE_MS })
    assert.match(stdout, /^\d+\n$/)
    return Number(stdout)
  }
  const [first, second, openings] = await Promise.all([
    child('write', 'first'),
    child('write', 'second'),
    child('open', 'opener'),
  ])
  t.diagnostic(`${first! + second!} transactions, ${openings} openings`)
  assert.ok(openings! >= OPENINGS && first! >= COMMITS && second! >= COMMITS)
})

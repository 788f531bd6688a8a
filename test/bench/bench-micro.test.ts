import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { test } from 'node:test'
import { promisify } from 'node:util'

const MAIN = new URL('../../bench/micro/main.ts', import.meta.url).pathname
const runBench = (...args: string[]) =>
  promisify(execFile)(process.execPath, ['--import', 'tsx', MAIN, ...args])

test('a short run of the micro bench measures every step', async () => {
  const { stdout } = await runBench('--milliseconds', '5')
  const [, , ...rows] = stdout.trim().split('\n')
  assert.ok(rows.length >= 12)
  for (const row of rows) assert.match(row, /^.+ {2,}[1-9]\d* {2,}[\d,]+$/)
})

test('a filter that matches nothing is told in one line', async () => {
  await assert.rejects(runBench('--filter', 'nothing like it'), {
    code: 2,
    stderr: /^--filter: expected .*\n$/,
  })
})

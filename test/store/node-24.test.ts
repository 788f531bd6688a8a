/**
 * Node.js 24, which cuts lmdb's shared buffers at the end of their memory unless both ends are given. The embedded store must
 * hold there too; the service does not start, since its HTTP server is not tested there.
 */

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'

const folder = mkdtempSync(join(tmpdir(), 'powgate-node-24-'))
const packageName = `node-linux-${process.arch}`
const node = join(folder, 'node_modules', packageName, 'bin/node')

before(() => {
  const args = ['install', '--no-save', '--silent', '--prefix', folder, `${packageName}@24`]
  const { status, stderr } = spawnSync('npm', args, { encoding: 'utf8' })
  assert.equal(status, 0, `npm cannot install ${packageName}@24: ${stderr}`)
})
after(() => rmSync(folder, { recursive: true }))

test('the embedded store holds on Node.js 24', () => {
  // Without it the runner would report to this one's runner, in a format of its own.
  const { NODE_TEST_CONTEXT: _, ...env } = process.env
  const args = ['--import', 'tsx', '--test', '--test-reporter=tap', 'test/store/embedded.test.ts']
  const { status, stdout } = spawnSync(node, args, {
    encoding: 'utf8',
    env,
    timeout: 300_000,
    killSignal: 'SIGKILL',
  })
  assert.match(stdout, /^# pass [1-9]\d/m)
  assert.equal(status, 0, stdout)
})

test('the service and the command line refuse to start on Node.js 24, and say what fits', () => {
  for (const entry of ['dist/main.js', 'dist/cli/main.js']) {
    const { status, stderr } = spawnSync(node, [entry], { encoding: 'utf8', timeout: 30_000 })
    assert.equal(status, 1)
    assert.match(
      stderr,
      /^powgate runs on Node\.js 20 \(from 20\.12\) and 22; this is 24\.\d+\.\d+\. Try: npx [^\n]+\n$/,
    )
  }
})

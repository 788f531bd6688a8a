/** The service starts neither on Node.js 24 as installed here, whose HTTP server has no binary, nor on 26. */

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { test } from 'node:test'
import { temporaryDir } from '../harness/temporary.ts'

const folder = temporaryDir('node-24')
const packageName = `node-linux-${process.arch}`

/** What is printed, by the line of Node.js. */
const REFUSALS: Readonly<Record<string, RegExp>> = {
  // The C library of this machine decides which of the two it is.
  24: /^powgate on Node\.js 24 needs (another build of its HTTP server|Linux with glibc 2\.38)[^\n]+\n$/,
  26: /^powgate runs on Node\.js 20 \(from 20\.12\), 22 and 24; this is 26\.[\d.]+\. Try: npx [^\n]+\n$/,
}

for (const [line, refusal] of Object.entries(REFUSALS))
  test(`the service and the command line refuse to start on Node.js ${line}, and say what fits`, () => {
    const prefix = join(folder, line)
    const args = ['install', '--no-save', '--silent', '--prefix', prefix, `${packageName}@${line}`]
    const installed = spawnSync('npm', args, { encoding: 'utf8' })
    assert.equal(installed.status, 0, `npm cannot install ${packageName}@${line}: ${installed.stderr}`)
    const node = join(prefix, 'node_modules', packageName, 'bin/node')
    for (const entry of ['dist/main.js', 'dist/cli/main.js']) {
      const { status, stderr } = spawnSync(node, [entry], { encoding: 'utf8', timeout: 30_000 })
      assert.equal(status, 1)
      assert.match(stderr, refusal)
    }
  })

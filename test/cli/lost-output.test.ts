/** Output that cannot be written: a change is told by exit code and stderr, with what to do for a key that nobody saw. */

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { printTable } from '../../src/cli/output.ts'
import { temporaryDir } from '../harness/temporary.ts'

const env = { PATH: process.env.PATH, SHLVL: '1', POWGATE_DATA_DIR: temporaryDir('lost-output') }
const file = join(env.POWGATE_DATA_DIR, 'sites.json')
const sites = [{ name: 'blog', keys: ['web'] }]
writeFileSync(file, JSON.stringify({ format: 'powgate-sites', version: 1, sites }))

/** @param before what the shell does first */
function powgate(command: string, output: string, before = '') {
  const line = `${before}${process.execPath} dist/cli/main.js ${command} ${output}`
  const args = ['--norc', '-o', 'pipefail', '-c', line]
  const { status, stdout, stderr } = spawnSync('bash', args, { env, encoding: 'utf8' })
  return { status, out: stdout, err: stderr }
}

for (const [output, cause] of Object.entries({
  '> /dev/full': 'the disk is full',
  '| true': 'its reader has gone',
}))
  test(`a site, a key and a change whose output is lost (${output}): exit code 1, and how to get another key`, () => {
    const created = powgate('site create --name shop --json', output)
    assert.equal(created.status, 1)
    const [, siteKey] = /The site (site_\w+) was created/.exec(created.err)!
    assert.match(created.err, new RegExp(`${cause}.*powgate key create ${siteKey}`))
    const key = powgate(`key create ${siteKey}`, output)
    assert.equal(key.status, 1)
    assert.match(key.err, /The API key \w{8} was created .* powgate key revoke \w{8}/)
    const disabled = powgate(`site disable ${siteKey}`, output)
    assert.deepEqual([disabled.status, /The site is disabled/.test(disabled.err)], [1, true])
    assert.match(powgate('site list', '').out, new RegExp(`${siteKey} .* disabled`))
  })

test('an output that a disk takes only in part is lost', () => {
  const part = join(env.POWGATE_DATA_DIR, 'part')
  for (let count = 0; count < 3; count++) powgate('site create --name shop', `> ${part}`) // so that an export is larger
  const withRoomFor1KiB = "trap '' XFSZ; ulimit -f 1; " // without the trap a signal would end the process
  const { status, err } = powgate('site export --whole', `> ${part}`, withRoomFor1KiB)
  assert.deepEqual([status, statSync(part).size], [1, 1024])
  assert.match(err, /^The output cannot be written \(/)
})

test('where the output is closed or /dev/null no key is made; a reader that needs no more is no error', () => {
  const count = () => JSON.parse(powgate('site list --json', '').out).length
  const before = count()
  for (const output of ['>&-', '> /dev/null'])
    for (const command of ['site create --name shop', `apply -f ${file}`]) {
      const { status, err } = powgate(command, output)
      const refused = 'standard output is closed or /dev/null: the API key would be lost. Nothing was made\n'
      assert.deepEqual([status, err], [1, refused], command)
    }
  assert.equal(count(), before)
  assert.deepEqual(powgate('site list', '| head -c 1').err, '')
})

test('apply whose output is lost names the API keys that it made', () => {
  const { status, err } = powgate(`apply -f ${file}`, '> /dev/full')
  const [, id] = /nobody knows them \((\w{8})\)\.\n$/.exec(err)!
  assert.equal(status, 1)
  assert.match(powgate('key list', '').out, new RegExp(`^${id} `, 'm'))
})

test('a table may have 200,000 rows', context => {
  const write = context.mock.method(process.stdout, 'write', () => true)
  printTable(['key'], Array(200_000).fill(['k']))
  write.mock.restore()
  assert.equal(write.mock.callCount(), 200_001, 'the heading too')
})

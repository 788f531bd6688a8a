/** The version before, built from its commit, and this one on one Redis: what one issued the other takes, and a use counts at both. */

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { test } from 'node:test'
import { Client } from '../harness/client.ts'
import { freshAddress } from '../harness/http.ts'
import { EASY, TestService, UNLIMITED } from '../harness/service.ts'
import { temporaryDir } from '../harness/temporary.ts'

const ROOT = new URL('../..', import.meta.url).pathname
/** The last commit before tokens could carry an action, until there is a release: then its tag, and no test of actions below. */
const BEFORE = 'd98becb'

const dir = temporaryDir('version-before')
execFileSync('sh', ['-c', `git archive ${BEFORE} | tar -xf - -C "$1"`, 'sh', dir], { cwd: ROOT })
execFileSync('npm', ['ci', '--silent', '--no-audit', '--no-fund'], { cwd: dir }) // in the versions of that commit
execFileSync('npm', ['run', '-s', 'build'], { cwd: dir })
const next = await TestService.start('redis', UNLIMITED)
const onTheSame = { ...UNLIMITED, REDIS_URL: next.redis!.url }
const old = await TestService.start('shared', onTheSame, join(dir, 'dist/main.js'))
const site = await next.createSite({ difficulty: EASY })
const clients = { old: new Client(old.url), new: new Client(next.url) }

for (const first of ['old', 'new'] as const) {
  const second = first === 'old' ? 'new' : 'old'
  test(`a challenge and a token of the ${first} version, at the ${second} one, once`, async () => {
    const from = freshAddress()
    const solution = await clients[first].solved(site.siteKey, { from })
    const { token } = (await clients[second].verify(site.siteKey, solution, { from })).json
    const again = await clients[first].verify(site.siteKey, solution, { from })
    assert.equal(again.json.code, 'nonce-used')
    const redeemed = await clients[first].verifyToken(site.apiKey, { token, expectedIp: from })
    assert.equal(redeemed.json.success, true, redeemed.text)
    const spent = await clients[second].verifyToken(site.apiKey, { token })
    assert.equal(spent.json.code, 'token-used')
  })
}

test('a token with an action is of a form that the old version refuses, and does not spend', async () => {
  const from = freshAddress()
  const solution = await clients.new.solved(site.siteKey, { from }, { action: 'login' })
  const { token } = (await clients.new.verify(site.siteKey, solution, { from })).json
  assert.equal((await clients.old.verifyToken(site.apiKey, { token })).json.code, 'invalid-token')
  assert.equal((await clients.new.verifyToken(site.apiKey, { token })).json.success, true)
})

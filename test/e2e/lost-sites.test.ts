/**
 * A Redis that lost sites under load: it is told until they are back, and they are served from memory. No rolling restart, which
 * would lose that memory, is made; new workers learn it from the primary process. Then commands restore the sites. Each test goes on
 * with the Redis and the workers that the one before has left.
 */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { apiKeyId } from '../../src/domain/site.ts'
import { Powgate } from '../cli/cli-process.ts'
import { Client } from '../harness/client.ts'
import { eventually, PATIENCE_MS } from '../harness/eventually.ts'
import { call, freshAddress } from '../harness/http.ts'
import { claimsAt, VISITED_SETTINGS, VisitorLoad } from '../harness/load/visitors.ts'
import { startObserved } from '../harness/metrics.ts'
import { workerPids } from '../harness/processes.ts'
import { ALWAYS_EASY, CONNECTIONS, lifetimesOf } from '../harness/service.ts'

const VISITORS_A_SECOND = 30

const { service, adminUrl, scrape } = await startObserved('redis', {
  ...VISITED_SETTINGS,
  POWGATE_FAIL_OPEN_AFTER_SECONDS: '0',
})
await service.untilReady()
const { pid } = service
const redis = service.redis!
const client = new Client(service.url)
const powgate = new Powgate({ REDIS_URL: redis.url, POWGATE_ADMIN_PORT: new URL(adminUrl).port })
const visited = await service.createSite({ difficulty: ALWAYS_EASY })
/** Nobody asks for this site while Redis has it, so a worker can know it from the primary process alone. */
const quiet = await service.createSite()
const quietKeyId = apiKeyId(quiet.apiKey)!
const RECORDS = 4 // two sites and their API keys

async function startLoad(): Promise<VisitorLoad> {
  const load = new VisitorLoad({
    port: service.port,
    connections: CONNECTIONS,
    reconnects: true,
    lifetimes: lifetimesOf(VISITED_SETTINGS),
    site: visited,
    storeEpoch: (await claimsAt(service.url, visited)).storeEpoch,
    difficulty: 15, // one bit less than the site asks, not yet too cheap; 1 to 13 bits would be read as those of HashWX
  })
  await load.connect()
  load.setRate(VISITORS_A_SECOND)
  return load
}

/** Waits for the one line of the log that has this text. */
async function untilLogged(text: string): Promise<void> {
  await eventually(PATIENCE_MS, text, () => service.output.split(text).length - 1 === 1)
}

async function countLost(): Promise<number> {
  return Math.max(...(await scrape()).samples('powgate_sites_lost').map(({ value }) => value))
}

async function untilLost(count: number): Promise<void> {
  await eventually(PATIENCE_MS, `${count} lost`, async () => (await countLost()) === count)
}

async function untilPrimaryKnows(text: string): Promise<void> {
  const isThere = async () => (await call(`${adminUrl}/sites.json`)).text.includes(text)
  await eventually(PATIENCE_MS, `the primary process knows of ${text}`, isThere)
}

/** Each worker answers some of these. */
async function assertServesQuiet(): Promise<void> {
  for (let count = 0; count < CONNECTIONS; count++)
    assert.equal((await client.challenge(quiet.siteKey, { from: freshAddress() })).status, 200)
}

/** The records of a site that is then deleted, as an older copy of Redis has them (src/store/redis/records.ts has the keys). */
const olderCopy = new Map<string, string>()
const recordKey = (member: string) => `pg:{sites}:record:${member}`

test('FLUSHALL under load: all sites are served from memory, and a rolling restart is refused without a refused request', async context => {
  const loadBefore = await startLoad()
  await eventually(
    PATIENCE_MS,
    'both workers redeem',
    () => loadBefore.answers.redeem > 3 * VISITORS_A_SECOND,
  )
  await untilPrimaryKnows(quiet.siteKey)
  await untilPrimaryKnows(quietKeyId)
  const deleted = await service.createSite()
  for (const member of [`s/${deleted.siteKey}`, `k/${apiKeyId(deleted.apiKey)}`])
    olderCopy.set(member, String(await redis.ask('get', recordKey(member))))
  await powgate.text(`site delete ${deleted.siteKey} --name test`)
  await untilPrimaryKnows('deletedAt')

  await redis.ask('flushall')
  await untilLost(RECORDS)
  await untilLogged('the store has lost sites or API keys')
  await assertServesQuiet()
  await loadBefore.stop() // the epoch is lost too, so what was issued under it is refused

  const load = await startLoad()
  await pause(500)
  const pids = workerPids(pid)
  process.kill(pid, 'SIGHUP')
  await untilLogged('nothing is renewed: the store lacks sites')
  assert.equal((await scrape()).value('powgate_config_last_reload_successful'), 0)
  const page = (await call(`${adminUrl}/dashboard/data.json`)).json
  assert.equal(page.service.isReloadDone, false)
  await pause(1000)
  await eventually(PATIENCE_MS, 'visitors are served', () => load.answers.redeem > 10)
  await load.stop()
  context.diagnostic(`${load.sent} requests after the loss, ${load.failures.length} failed`)
  assert.deepEqual(load.failures, [], service.output)
  assert.deepEqual(workerPids(pid), pids, 'the same workers')
})

test('workers that replace killed ones learn from the primary process what is lost', async () => {
  const pids = workerPids(pid)
  for (const worker of pids) process.kill(worker, 'SIGKILL')
  assert.equal(await countLost(), RECORDS)
  await eventually(PATIENCE_MS, 'replaced', () => !workerPids(pid).some(child => pids.includes(child)))
  const isReady = async () => (await call(`${adminUrl}/readyz`)).status === 200
  await eventually(PATIENCE_MS, 'ready', isReady)
  await pause(1500) // workers report once a second
  assert.equal(await countLost(), RECORDS)
  await assertServesQuiet()
})

test('commands tell what is lost; an export from the service, applied, brings it back with the same keys', async () => {
  const checked = (await new Powgate(service.env).run('check')).out
  assert.match(checked, /has lost 4 sites or API keys, .*--from-service > lost.json, then powgate apply/)
  assert.doesNotMatch(checked, /there are no sites yet/)
  const expected =
    /^There are no sites .* 2: restart nothing, .* --from-service > lost.json, then .* < lost.json/
  assert.match(await powgate.text('site list'), expected)
  assert.doesNotMatch(await powgate.with({ POWGATE_REDIS_PREFIX: 'other' }).text('site list'), /remembers/)
  const steps = /^there is no .*, but the running service remembers it: restart nothing, and restore them/
  for (const command of [`site show ${quiet.siteKey}`, `key revoke ${quietKeyId}`])
    assert.match(await powgate.problem(1, command), steps)
  const file = JSON.stringify({ format: 'powgate-sites', version: 1, sites: [{ name: 'test' }] })
  for (const command of ['site create --name test', 'apply -f -', 'apply -f - --dry-run']) {
    const { code, err } = await powgate.runWithInput(file, command)
    assert.equal(code, 1, command)
    assert.match(err, /lost the site test \(site_\w+\), which the running service remembers: restart nothing/)
  }
  const exported = await powgate.run('site export --from-service')
  assert.equal(exported.code, 0, exported.err)
  const applied = await powgate.runWithInput(exported.out, 'apply -f - --json')
  assert.equal(applied.code, 0, applied.err)
  await untilLost(0)
  await untilLogged('the store has all sites and API keys again')
  const again = await powgate.runWithInput(exported.out, 'apply -f - --json')
  assert.equal(JSON.parse(again.out).apiKeysAdded, undefined, 'a second time adds nothing')
  process.kill(pid, 'SIGHUP')
  await untilLogged('all workers are new')
  const token = await client.token(visited.siteKey)
  const { status } = await client.verifyToken(visited.apiKey, { token })
  assert.equal(status, 200, 'the same keys as before')
})

test('an older copy of Redis brings a deleted site back, and the file of the service deletes it again', async () => {
  for (const [member, record] of olderCopy) {
    await redis.ask('set', recordKey(member), record)
    const revision = Number(await redis.ask('incr', 'pg:{sites}:revision'))
    await redis.ask('zadd', 'pg:{sites}:changes', revision, member)
  }
  await untilLost(olderCopy.size)
  const restored = await powgate.text('site export --from-service')
  assert.match((await powgate.runWithInput(restored, 'apply -f -')).out, /^test \(site_\S+\): deleted$/m)
  await untilLost(0)
})

test('without Redis, workers that nobody has asked for a site serve it from memory', async () => {
  await redis.kill()
  await assertServesQuiet()
})

/**
 * A Redis that lost sites under load: it is told until they are back, and they are served from memory. No rolling restart, which
 * would lose that memory, is made; new workers learn it from the primary process. Then commands restore the sites.
 */

import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { Powgate } from '../cli/cli-process.ts'
import { Client } from '../harness/client.ts'
import { eventually, PATIENCE_MS } from '../harness/eventually.ts'
import { call, freshAddress } from '../harness/http.ts'
import { claimsAt, VISITED_SETTINGS, VisitorLoad } from '../harness/load/visitors.ts'
import { type Observed, startObserved } from '../harness/metrics.ts'
import { workerPids } from '../harness/processes.ts'
import { ALWAYS_EASY, lifetimesOf } from '../harness/service.ts'

/** Visitors a second. */
const RATE = 30
/** Enough that both workers have some. */
const CONNECTIONS = 25
/** Easy enough for 30 visitors a second, and not too cheap for the site. A nonce of 1 to 13 bits would be taken for one of HashWX. */
const BITS = 15

async function start(context: TestContext) {
  const observed = await startObserved('redis', { ...VISITED_SETTINGS, POWGATE_FAIL_OPEN_AFTER_SECONDS: '0' })
  context.after(() => observed.service.stop())
  await observed.service.untilReady()
  const site = await observed.service.createSite({ difficulty: ALWAYS_EASY })
  const unused = await observed.service.createSite()
  const { port, url } = observed.service
  const newLoad = async () => {
    const load = new VisitorLoad({
      port,
      connections: CONNECTIONS,
      reconnects: true,
      lifetimes: lifetimesOf(VISITED_SETTINGS),
      site,
      storeEpoch: (await claimsAt(url, site)).storeEpoch,
      difficulty: BITS,
    })
    await load.connect()
    load.setRate(RATE)
    return load
  }
  const load = await newLoad()
  await eventually(PATIENCE_MS, 'both workers redeem', () => load.answers.redeem > 3 * RATE)
  return { ...observed, site, unused, load, newLoad }
}

/** Waits for the one line of the log that has this text. */
async function untilLogged({ service }: Pick<Observed, 'service'>, text: string): Promise<void> {
  await eventually(PATIENCE_MS, text, () => service.output.split(text).length - 1 === 1)
}

async function lostOf({ scrape }: Pick<Observed, 'scrape'>): Promise<number> {
  return Math.max(...(await scrape()).samples('powgate_sites_lost').map(({ value }) => value))
}

async function untilLost(observed: Observed, count: number): Promise<void> {
  await eventually(PATIENCE_MS, `${count} lost`, async () => (await lostOf(observed)) === count)
}

test('FLUSHALL under load: served from memory, told, and a roll is refused without a refused request', async context => {
  const stage = await start(context)
  const { redis, pid } = stage.service
  const unasked = await stage.service.createSite() // nobody asks for it before it is lost
  await eventually(PATIENCE_MS, 'the primary process knows it', async () => {
    const { text } = await call(`${stage.adminUrl}/sites.json`)
    return text.includes(unasked.siteKey) && text.includes(unasked.apiKey.slice(3, 11))
  })
  // A site that is deleted, and its records, as an older copy of Redis has them.
  const deleted = await stage.service.createSite()
  const members = [`s/${deleted.siteKey}`, `k/${deleted.apiKey.slice(3, 11)}`]
  const nameOf = (member: string) => `pg:{sites}:record:${member}`
  const olderCopy = new Map<string, string>()
  for (const member of members) olderCopy.set(member, String(await redis!.ask('get', nameOf(member))))
  const powgate = new Powgate({ REDIS_URL: redis!.url, POWGATE_ADMIN_PORT: new URL(stage.adminUrl).port })
  await powgate.text(`site delete ${deleted.siteKey} --name test`)
  const knowsOfIt = async () => (await call(`${stage.adminUrl}/sites.json`)).text.includes('deletedAt')
  await eventually(PATIENCE_MS, 'the primary process knows of the deletion', knowsOfIt)
  await redis!.ask('flushall')
  await untilLost(stage, 6) // three sites and their API keys, of which workers have used only those of `site`
  await untilLogged(stage, 'the store has lost sites or API keys')
  const client = new Client(stage.service.url)
  const asksAll = async () => {
    for (let count = 0; count < CONNECTIONS; count++)
      for (const { siteKey } of [unasked, stage.unused])
        assert.equal((await client.challenge(siteKey, { from: freshAddress() })).status, 200)
  }
  await asksAll()
  await stage.load.stop() // what was issued before is refused: its marks are lost

  // A roll is refused, which no visitor notices.
  const load = await stage.newLoad()
  await pause(500)
  const pids = workerPids(pid)
  process.kill(pid, 'SIGHUP')
  await untilLogged(stage, 'nothing is renewed: the store lacks sites')
  assert.equal((await stage.scrape()).value('powgate_config_last_reload_successful'), 0)
  const page = (await call(`${stage.adminUrl}/dashboard/data.json`)).json
  assert.equal(page.service.isReloadDone, false)
  await pause(1000)
  await eventually(PATIENCE_MS, 'visitors are served', () => load.answers.redeem > 10)
  await load.stop()
  context.diagnostic(`${load.sent} requests after the loss, ${load.failures.length} failed`)
  assert.deepEqual(load.failures, [], stage.service.output)
  assert.deepEqual(workerPids(pid), pids, 'the same workers')

  // New workers know what the others knew.
  for (const worker of pids) process.kill(worker, 'SIGKILL')
  assert.equal(await lostOf(stage), 6)
  await eventually(PATIENCE_MS, 'replaced', () => !workerPids(pid).some(child => pids.includes(child)))
  const isReady = async () => (await call(`${stage.adminUrl}/readyz`)).status === 200
  await eventually(PATIENCE_MS, 'ready', isReady)
  await pause(1500) // workers report once a second
  assert.equal(await lostOf(stage), 6)
  await asksAll() // the primary process has told the new workers

  // The way back: what the service knows becomes a file, and the file's sites and keys are written again.
  const checked = (await new Powgate(stage.service.env).run('check')).out
  assert.match(checked, /has lost 6 sites or API keys, .*--from-service > lost.json, then powgate apply/)
  assert.doesNotMatch(checked, /there are no sites yet/)
  assert.match(
    await powgate.text('site list'),
    /^There are no sites in .+ remembers 3: restart nothing, .*site export --from-service > lost.json, then powgate apply -f - < lost.json/,
  )
  assert.doesNotMatch(await powgate.with({ POWGATE_REDIS_PREFIX: 'other' }).text('site list'), /remembers/)
  const steps = /^there is no .*, but the running service remembers it: restart nothing, and restore them/
  for (const command of [`site show ${unasked.siteKey}`, `key revoke ${unasked.apiKey.slice(3, 11)}`])
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
  await untilLost(stage, 0)
  await untilLogged(stage, 'the store has all sites and API keys again')
  const again = await powgate.runWithInput(exported.out, 'apply -f - --json')
  assert.equal(JSON.parse(again.out).apiKeysAdded, undefined, 'a second time adds nothing')
  process.kill(pid, 'SIGHUP')
  await untilLogged(stage, 'all workers are new')
  const { siteKey, apiKey } = stage.site
  const { status } = await client.verifyToken(apiKey, { token: await client.token(siteKey) })
  assert.equal(status, 200, 'the same keys as before')

  // An older copy brings a deleted site back, and the file deletes it again.
  for (const [member, record] of olderCopy) {
    await redis!.ask('set', nameOf(member), record)
    const revision = Number(await redis!.ask('incr', 'pg:{sites}:revision'))
    await redis!.ask('zadd', 'pg:{sites}:changes', revision, member)
  }
  await untilLost(stage, 2)
  const restored = await powgate.text('site export --from-service')
  assert.match((await powgate.runWithInput(restored, 'apply -f -')).out, /^test \(site_\S+\): deleted$/m)
  await untilLost(stage, 0)

  await redis!.kill()
  for (let count = 0; count < CONNECTIONS; count++) {
    const { status } = await client.challenge(stage.unused.siteKey, { from: freshAddress() })
    assert.equal(status, 200, 'from the memory of workers that nobody has asked for this site')
  }
})

/** What a service with the embedded store does when its store process or a worker dies, or another wants its directory. */

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Client } from '../harness/client.ts'
import { serveStore } from '../harness/embedded.ts'
import { eventually, PATIENCE_MS } from '../harness/eventually.ts'
import { freshAddress } from '../harness/http.ts'
import { freePort } from '../harness/ports.ts'
import { childPids, storePid, workerPids } from '../harness/processes.ts'
import { EASY, TestService, UNLIMITED_REDEMPTIONS } from '../harness/service.ts'
import { temporaryDir } from '../harness/temporary.ts'
import { Visitors } from '../harness/visitors.ts'

const KILLS = 5
/** Visitors at a time, and calls at a time with one token. */
const [LANES, RACERS] = [8, 32]

const service = await TestService.start('embedded', UNLIMITED_REDEMPTIONS) // of all tests; ends with the file
const site = await service.createSite({ difficulty: EASY })
const client = new Client(service.url)

const newToken = () => client.token(site.siteKey, { from: freshAddress() })
const tokenIfServed = () => newToken().catch(() => undefined)
const redeem = async (text: string) => (await client.verifyToken(site.apiKey, { token: text })).json

test('killed under load: it is there again, no token is redeemed twice, and a site that was made before each kill is kept', async () => {
  const redeemed = new Map<string, number>()
  const visitors = new Visitors(async () => {
    const text = await newToken()
    for (let attempt = 0; attempt < 2; attempt++)
      if ((await redeem(text)).success === true) redeemed.set(text, (redeemed.get(text) ?? 0) + 1)
  }, LANES)
  for (let kill = 0; kill < KILLS; kill++) {
    await eventually(PATIENCE_MS, 'visitors come through', async () => (await tokenIfServed()) !== undefined)
    await service.createSite({ name: `site ${kill}` })
    const pid = storePid(service.pid)!
    process.kill(pid, 'SIGKILL')
    await eventually(PATIENCE_MS, 'another one', () => ![undefined, pid].includes(storePid(service.pid)))
  }
  await eventually(PATIENCE_MS, 'visitors come through', async () => (await tokenIfServed()) !== undefined)
  await visitors.stop()
  assert.ok(redeemed.size > 0)
  for (const [text, times] of redeemed) assert.equal(times, 1, text)
  const sites = await service.openSites()
  const kept = (await sites.listSites()).map(site => site.name)
  await sites.close()
  for (let kill = 0; kill < KILLS; kill++) assert.ok(kept.includes(`site ${kill}`), `site ${kill}`)
})

test('workers killed while they redeem: no token is redeemed twice, and a lost answer is had again by its idempotency key', async () => {
  for (let kill = 0; kill < KILLS; kill++) {
    const text = await eventually(PATIENCE_MS, 'a token', tokenIfServed)
    const attempt = (key: number) => {
      const body = { token: text, idempotencyKey: `attempt ${key}` }
      return client.verifyToken(site.apiKey, body).catch(() => undefined)
    }
    const keys = Array.from({ length: RACERS }, (_, key) => key)
    const racing = Promise.all(keys.map(attempt))
    await sleep(kill) // each time a millisecond later
    process.kill(workerPids(service.pid)[kill % 2]!, 'SIGKILL')
    await racing
    const settled = (key: number) =>
      eventually(PATIENCE_MS, 'an answer', async () => {
        const answer = await attempt(key)
        return answer !== undefined && answer.status < 500 ? answer.text : undefined
      })
    const answers = await Promise.all(keys.map(settled))
    assert.equal(answers.filter(answer => answer.includes('"success":true')).length, 1, answers.join('\n'))
    await eventually(PATIENCE_MS, 'two workers', () => workerPids(service.pid).length === 2)
  }
})

test('an orderly restart keeps what is under way', async () => {
  const [fresh, used] = [await newToken(), await newToken()]
  assert.ok((await redeem(used)).success)
  assert.equal(await service.end(), 0)
  await service.boot()
  assert.ok((await redeem(fresh)).success)
  assert.equal((await redeem(used)).success, false)
})

test('a second service in the same directory says who has it, and the first goes on', async () => {
  const other = TestService.prepare({ POWGATE_DATA_DIR: service.dataDir }, await freePort())
  const why = `POWGATE_DATA_DIR: .* is in use by the service of process ${service.pid}: end that first`
  await assert.rejects(other.boot(), new RegExp(why))
  assert.ok((await redeem(await newToken())).success)
})

/** Starts a service, and sends SIGTERM some time after `hasCome` is true: it must end with 0, unhurried by a kill. */
async function assertEnds(dataDir: string, hasCome: (starting: TestService) => boolean, afterMs = 0) {
  const starting = TestService.prepare({ POWGATE_DATA_DIR: dataDir }, await freePort())
  const ended = starting.boot().catch((error: Error) => error.message)
  await eventually(PATIENCE_MS, `${hasCome}`, () => hasCome(starting))
  await sleep(afterMs)
  const from = performance.now()
  process.kill(starting.pid, 'SIGTERM')
  assert.match((await ended) ?? '', /the service ended with 0/)
  // Clearly less than the 15 s after which a store process that does not end is killed (src/process/store-process.ts).
  assert.ok(performance.now() - from < 8000)
}

test('SIGTERM while a start waits for the directory: exit 0 at once, and no socket is left', async () => {
  const dataDir = temporaryDir('start')
  const held = await serveStore(dataDir)
  await assertEnds(dataDir, ({ output }) => /: waiting/.test(output))
  await held.close({ saves: true })
  assert.deepEqual(readdirSync(dataDir).sort(), ['sites.jsonl', 'state'])
})

test('SIGTERM while a start loads its state: exit 0 at once, and the state is still there, which only a service that serves removes', async () => {
  const dataDir = temporaryDir('start')
  await (await serveStore(dataDir)).close({ saves: true })
  const state = join(dataDir, 'state')
  const hasForked = ({ pid }: TestService) => childPids(pid).length > 0
  for (const afterMs of [0, 20, 40, 80, 160]) {
    await assertEnds(dataDir, hasForked, afterMs)
    assert.ok(existsSync(state), `${afterMs}`)
  }
  execFileSync('sh', ['-c', 'rm $0 && mkfifo $0', state]) // whoever reads it waits without end
  await assertEnds(dataDir, () => existsSync(`${state}.reading`)) // so a start names it while it reads; one that ends, renames it back
  assert.ok(existsSync(state))
})

/** A form that bots post junk into, while people send it: on every kind of store, by a backend of its own and by the client package. */

import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { Powgate } from '../../client/src/powgate.ts'
import { QUICK_DIFFICULTY, QuickClient } from '../contract/support.ts'
import { freshAddress } from '../harness/http.ts'
import { RedisCluster } from '../harness/redis-cluster.ts'
import { TestService } from '../harness/service.ts'

const PEOPLE = 60
const JUNK_A_PERSON = 17 // 1,020 in all

async function startOn(store: 'embedded' | 'redis' | 'cluster', t: TestContext): Promise<TestService> {
  if (store !== 'cluster') return TestService.start(store)
  const cluster = await RedisCluster.start()
  t.after(() => cluster.stop())
  return TestService.start('embedded', { REDIS_URL: cluster.url })
}

for (const store of ['embedded', 'redis', 'cluster'] as const) {
  test(`${store}: of 60 people none is refused while 1,000 posts with junk come within a minute, by the API and by powgate-client`, async t => {
    const service = await startOn(store, t)
    t.after(() => service.stop())
    const client = new QuickClient(service.url)
    const site = await service.createSite({ difficulty: QUICK_DIFFICULTY })
    const other = await service.createSite({ difficulty: QUICK_DIFFICULTY })
    const tokenOf = ({ siteKey }: typeof site) => client.token(siteKey, { from: freshAddress() })
    const gate = new Powgate({ url: service.url, apiKey: site.apiKey, timeoutMs: 20_000 })
    const backend = freshAddress()
    const redeem = async (token: string) => {
      const { json } = await client.verifyToken(site.apiKey, { token }, { from: backend })
      return json.success === true
    }
    const verify = async (token: string) => (await gate.verify(token)).ok

    for (const ask of [redeem, verify]) {
      const good = await Promise.all(Array.from({ length: PEOPLE }, () => tokenOf(site)))
      const used = await tokenOf(site)
      assert.equal(await ask(used), true)
      const junk = ['x', used, `${(await tokenOf(site)).slice(0, -1)}!`, await tokenOf(other)]
      const startMs = performance.now()
      let junkAccepted = 0
      const junkOf = async (index: number) => {
        if (await ask(junk[index % junk.length]!).catch(() => false)) junkAccepted++
      }
      const people = await Promise.all(
        good.map(async (token, person) => {
          const junkBefore = Array.from({ length: JUNK_A_PERSON }, (_, index) => junkOf(person + index))
          await Promise.all(junkBefore)
          return ask(token)
        }),
      )
      assert.deepEqual(new Set(people), new Set([true]))
      assert.equal(junkAccepted, 0)
      assert.ok(performance.now() - startMs < 60_000, 'all within a minute')
    }
  })
}

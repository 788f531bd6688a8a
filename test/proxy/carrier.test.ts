/** Popularity is no attack: people of one carrier behind a proxy whose kept connections lead to one of many workers. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Client } from '../harness/client.ts'
import { seedQuietHours } from '../harness/history.ts'
import { FrontProxy, PROXY_ADDRESS } from '../harness/proxies.ts'
import { TestService } from '../harness/service.ts'

const PEOPLE = 60
const BASE = 16

test('sixty people of one /24 in a minute, over nginx to eight workers, all pay the base', async t => {
  const service = await TestService.start('embedded', {
    POWGATE_WORKERS: '8',
    POWGATE_TRUSTED_PROXIES: `127.0.0.1,${PROXY_ADDRESS}`,
    POWGATE_STORE_DEADLINE_MS: '5000',
  })
  t.after(() => service.stop())
  const { siteKey } = await service.createSite({ difficulty: { base: BASE, min: BASE, max: 28 } })
  await seedQuietHours(service, siteKey)
  const proxy = await FrontProxy.start('nginx', service)
  t.after(() => proxy.stop())
  const client = new Client(proxy.url)
  const bits: number[] = []
  for (let person = 0; person < PEOPLE; person++) {
    const headers = { 'X-Forwarded-For': `203.0.113.${person}` }
    bits.push((await client.challenge(siteKey, { headers })).json.difficulty)
    const solution = await client.solved(siteKey, { headers })
    assert.equal((await client.verify(siteKey, solution, { headers })).json.passed, true)
  }
  assert.deepEqual(bits, Array(PEOPLE).fill(BASE))
})

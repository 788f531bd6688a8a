/**
 * Many workers behind balancers whose kept connections each lead to one of them: popularity is no attack, and an attack is
 * known to all at once.
 */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { nonceTerms } from '../../src/domain/nonce.ts'
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
  })
  t.after(() => service.stop())
  const { siteKey } = await service.createSite({ difficulty: { base: BASE, min: BASE, max: 28 } })
  await seedQuietHours(service)
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

test('who gets challenges from one of eight workers, and solves them at another, pays as others do', async t => {
  const [asking, solving] = ['127.0.0.2', '127.0.0.3']
  const service = await TestService.start('embedded', {
    POWGATE_WORKERS: '8',
    POWGATE_TRUSTED_PROXIES: `${asking},${solving}`,
  })
  t.after(() => service.stop())
  const { siteKey } = await service.createSite({ difficulty: { base: BASE, min: BASE, max: 28 } })
  await seedQuietHours(service)
  const client = new Client(service.url)
  const visit = async (index: number): Promise<number> => {
    const headers = { 'X-Forwarded-For': `2001:db8:1:${index.toString(16)}::1` }
    const solution = await client.solved(siteKey, { from: asking, headers })
    assert.equal((await client.verify(siteKey, solution, { from: solving, headers })).json.passed, true)
    return nonceTerms(solution.nonce).difficulty
  }
  for (let index = 0; index < 50; index++) await visit(index)
  // Thirty a minute of a /48 cost nothing.
  assert.ok((await visit(60)) > BASE)
})

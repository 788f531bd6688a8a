/** What the service itself makes in its store has its entries in the audit log too. */

import assert from 'node:assert/strict'
import { hostname } from 'node:os'
import { after, before, describe, test } from 'node:test'
import { DEMO_SITE_KEY } from '../../src/demo/site.ts'
import type { AuditEntry } from '../../src/domain/audit.ts'
import { TestService } from '../support/service.ts'

describe('the audit log of a first start', () => {
  let service: TestService
  before(async () => {
    service = await TestService.start('embedded', { POWGATE_DEMO: 'on' })
  })
  after(() => service.stop())

  async function entries(): Promise<AuditEntry[]> {
    const store = await service.openSites()
    return store.readAudit({ limit: 100 }).finally(() => store.close())
  }

  test('names the service and why; a second start makes nothing, and says nothing', async () => {
    const first = await entries()
    const siteKey = /site key +(site_\w{22})/.exec(service.output)![1]!
    const apiKey = /API key +(sk_\S+)/.exec(service.output)![1]!
    const actions = first.map(({ who, how, action, siteKey }) => [who, how, action, siteKey])
    const [start, demo] = ['first start', 'demo page'].map(how => [`powgate (${how}) at ${hostname()}`, how])
    assert.deepEqual(actions.slice(0, 2).sort(), [
      [...start!, 'key-created', siteKey],
      [...start!, 'site-created', siteKey],
    ])
    assert.deepEqual(actions.slice(2).sort(), [
      [...demo!, 'key-created', DEMO_SITE_KEY],
      [...demo!, 'site-created', DEMO_SITE_KEY],
    ])
    assert.ok(!JSON.stringify(first).includes(apiKey.slice(12)))
    await service.end()
    await service.boot()
    assert.deepEqual(await entries(), first)
  })
})

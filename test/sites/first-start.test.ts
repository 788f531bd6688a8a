/** The sites that the service itself creates: their audit entries, and what an export contains. */

import assert from 'node:assert/strict'
import { hostname } from 'node:os'
import { test } from 'node:test'
import { DEMO_SITE_KEYS } from '../../src/demo/site.ts'
import type { AuditEntry } from '../../src/domain/audit.ts'
import { readFirstKeys } from '../../src/sites/service-files.ts'
import { TestService } from '../harness/service.ts'

test('a first start is in the audit log; a second start creates and prints nothing', async t => {
  const service = await TestService.start('embedded', { POWGATE_DEMO: 'on' })
  t.after(() => service.stop())
  const entries = async (): Promise<AuditEntry[]> => {
    const store = await service.openSites()
    return store.readAudit({ limit: 100 }).finally(() => store.close())
  }
  const first = await entries()
  const siteKey = /site key +(site_\w{22})/.exec(service.output)![1]!
  const { apiKey } = readFirstKeys(service.dataDir)!
  const told = first.map(({ who, how, action, siteKey }) => `${who}, ${how}: ${action} ${siteKey}`)
  const expected = (how: string, siteKey: string) =>
    ['key', 'site'].map(what => `powgate (${how}) at ${hostname()}, ${how}: ${what}-created ${siteKey}`)
  assert.deepEqual(told.slice(0, 2).sort(), expected('first start', siteKey))
  const ofDemo = [...DEMO_SITE_KEYS].flatMap(key => expected('demo page', key))
  assert.deepEqual(told.slice(2).sort(), ofDemo.sort())
  assert.ok(!JSON.stringify(first).includes(apiKey.slice(12)))
  await service.end()
  await service.boot()
  assert.deepEqual(await entries(), first)
})

/** What the audit log says of a change; when an API key expires; a site's own score weights. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { auditEntry, type RecordChange, siteChanges } from '../../src/domain/audit.ts'
import { SCORE_WEIGHTS, scoreOf } from '../../src/domain/score.ts'
import {
  type ApiKeyRecord,
  apiKeySha256,
  compileSite,
  isExpired,
  newApiKey,
  SITE_DEFAULTS,
  type SiteRecord,
} from '../../src/domain/site.ts'
import { completed, FIELDS, valueIn } from '../../src/domain/site-fields.ts'

const AUTHOR = { who: 'alice at test', how: 'site update' }

const SITE: SiteRecord = {
  siteKey: 'site_0123456789ABCDEFabcdef',
  ...SITE_DEFAULTS,
  name: 'shop',
  origins: ['https://a.example'],
  createdAt: 1,
  updatedAt: 1,
}

const API_KEY = newApiKey(new Uint8Array(128).fill(7))
const [id, secretSha256] = [API_KEY.slice(3, 11), apiKeySha256(API_KEY)]
const KEY: ApiKeyRecord = { id, siteKey: SITE.siteKey, secretSha256, createdAt: 1, revokedAt: null }

test('changes of a site: none for its times; each field that differs, with both values, and back again', () => {
  assert.deepEqual(siteChanges(SITE, { ...SITE, createdAt: 2, updatedAt: 2 }), [])
  const after = { ...SITE, ipRules: { allow: [], block: ['10.0.0.1'] }, threshold: 1, limits: { verify: 3 } }
  const changes = [
    { field: 'threshold', from: 0.5, to: 1 },
    { field: 'ipRules.block', from: [], to: ['10.0.0.1'] },
    { field: 'limits.verify', from: null, to: 3 },
  ]
  assert.deepEqual(siteChanges(SITE, after), changes)
  const back = new Map(siteChanges(after, SITE).map(change => [change.field, change]))
  assert.equal(back.size, 3)
  for (const { field, from, to } of changes) assert.deepEqual(back.get(field), { field, from: to, to: from })
})

test('the audit log of a new site lists every field that is set', () => {
  const changes = siteChanges(undefined, SITE)
  const set = FIELDS.filter(field => valueIn(SITE, field) !== undefined)
  assert.equal(changes.map(({ field }) => field).join(), set.map(({ name }) => name).join())
  assert.ok(changes.every(({ from }) => from === null))
})

const DISABLED = { ...SITE, active: false }
const GONE = { deletedAt: 9 }
const REVOKED = { ...KEY, revokedAt: 5 }
const NAMED = { ...KEY, name: 'backend', expiresAt: 5 }
const BLOCK = ['10.0.0.1']
/** `fields` are those that the entry names; left out for a new site, which names all. */
const ACTIONS: readonly [action: string, change: RecordChange, fields?: string][] = [
  ['site-created', { site: SITE, expected: undefined }],
  ['site-changed', { site: { ...SITE, name: 'new' }, expected: SITE }, 'name'],
  ['site-disabled', { site: { ...DISABLED, name: 'new' }, expected: SITE }, 'name active'],
  ['site-enabled', { site: SITE, expected: DISABLED }, 'active'],
  ['site-changed', { site: { ...DISABLED, name: 'new' }, expected: DISABLED }, 'name'],
  ['site-deleted', { site: { ...SITE, ...GONE }, expected: SITE }, ''],
  ['key-created', { apiKey: KEY, expected: undefined }, ''],
  ['key-changed', { apiKey: { ...KEY, name: 'backend' }, expected: KEY }, 'name'],
  ['key-changed', { apiKey: NAMED, expected: { ...KEY, expiresAt: 5 } }, 'name'],
  ['key-changed', { apiKey: { ...KEY, expiresAt: 5 }, expected: KEY }, 'expiresAt'],
  ['key-revoked', { apiKey: REVOKED, expected: KEY }, 'revokedAt'],
  ['key-changed', { apiKey: { ...REVOKED, name: 'backend' }, expected: REVOKED }, 'name'],
  ['key-deleted', { apiKey: { ...REVOKED, ...GONE }, expected: REVOKED }, ''],
]

test('the action of an entry, its author, its subject and the fields that differ; no secret and no hash', () => {
  for (const [action, change, fields] of ACTIONS) {
    const entry = auditEntry(change, AUTHOR)
    assert.deepEqual([entry.action, entry.who, entry.how], [action, AUTHOR.who, AUTHOR.how])
    assert.equal(entry.siteKey, SITE.siteKey)
    assert.equal(entry.keyId, 'apiKey' in change ? KEY.id : undefined)
    assert.equal(entry.name, 'apiKey' in change ? change.apiKey.name : change.site.name)
    if (fields !== undefined) assert.equal(entry.changes.map(({ field }) => field).join(' '), fields)
    const text = JSON.stringify(entry)
    assert.ok(!text.includes(KEY.secretSha256) && !text.includes(API_KEY.slice(12)), text)
    assert.ok(!text.includes(AUTHOR.who, text.indexOf(AUTHOR.who) + 1))
  }
})

test('an entry names networks, not addresses, in each list that has them', () => {
  const after = { ...SITE, ipRules: { allow: BLOCK, block: BLOCK }, known: { networks: BLOCK } }
  const { changes } = auditEntry({ site: after, expected: SITE }, AUTHOR)
  for (const { field, to } of changes) assert.deepEqual(to, ['10.0.0.0/24'], field)
  assert.equal(changes.length, 3)
})

test('the order of a record and what it lacks are no change; a group that says nothing is left out', () => {
  const { siteKey, threshold: _, ...rest } = SITE
  const stored = Object.fromEntries(Object.entries({ siteKey, ...rest }).reverse()) as unknown as SiteRecord
  assert.deepEqual(siteChanges(stored, SITE), [])
  assert.equal(compileSite(stored).record.threshold, 0.5)
  const { siteKey: __, createdAt: ___, updatedAt: ____, ...settings } = SITE
  const all = { ...stored, limits: {}, failOpen: {}, scoreWeights: {} }
  assert.equal(JSON.stringify(completed(all)), JSON.stringify(settings))
})

test('an API key expires at its moment, not before; one of an older version never', () => {
  assert.ok(!isExpired(KEY, Number.MAX_SAFE_INTEGER))
  assert.ok(!isExpired({ ...KEY, expiresAt: null }, Number.MAX_SAFE_INTEGER))
  assert.ok(!isExpired({ ...KEY, expiresAt: 1000 }, 999))
  assert.ok(isExpired({ ...KEY, expiresAt: 1000 }, 1000))
})

test("a site's weights go before the usual ones, which sites without their own share; of weight 0 a signal is no reason", () => {
  assert.deepEqual(compileSite(SITE).scoreWeights, SCORE_WEIGHTS)
  const { scoreWeights } = compileSite({ ...SITE, scoreWeights: { webdriver: 0 } })
  assert.deepEqual(scoreWeights, { ...SCORE_WEIGHTS, webdriver: 0 })
  const environment = { webdriver: true, noLanguages: true }
  const signals = { environment, solveTimeMs: undefined, elapsedMs: 400, difficulty: 18, addressFailures: 0 }
  assert.deepEqual(scoreOf(signals, scoreWeights).reasons, ['noLanguages'])
})

/** The audit log: the entry for each change of a site or API key. Also when an API key expires, and a site's own score weights. */

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

/** An API key is `sk_`, an id of 8 characters, `_` and a secret. */
const API_KEY = newApiKey(new Uint8Array(128).fill(7))
const [id, secret, secretSha256] = [API_KEY.slice(3, 11), API_KEY.slice(12), apiKeySha256(API_KEY)]
const KEY: ApiKeyRecord = { id, siteKey: SITE.siteKey, secretSha256, createdAt: 1, revokedAt: null }

test('changes of a site: none for its times; each field that differs, with both values, in either direction', () => {
  assert.deepEqual(siteChanges(SITE, { ...SITE, createdAt: 2, updatedAt: 2 }), [])
  const after = { ...SITE, ipRules: { allow: [], block: ['10.0.0.1'] }, threshold: 1, limits: { verify: 3 } }
  const changes = [
    { field: 'threshold', from: 0.5, to: 1 },
    { field: 'ipRules.block', from: [], to: ['10.0.0.1'] },
    { field: 'limits.verify', from: null, to: 3 },
  ]
  assert.deepEqual(siteChanges(SITE, after), changes)
  const reversed = changes.map(({ field, from, to }) => ({ field, from: to, to: from }))
  assert.deepEqual(siteChanges(after, SITE), reversed)
})

test('the audit log of a new site lists every field that is set', () => {
  const changes = siteChanges(undefined, SITE)
  const set = FIELDS.filter(field => valueIn(SITE, field) !== undefined)
  assert.equal(changes.map(({ field }) => field).join(), set.map(({ name }) => name).join())
  assert.ok(changes.every(({ from }) => from === null))
})

const DISABLED = { ...SITE, active: false }
const REVOKED = { ...KEY, revokedAt: 5 }
const EXPIRING = { ...KEY, expiresAt: 5 }
const deletedAt = 9
/** Each change, the action that its entry must have, and the fields that the entry must name (of a new site all, so none are listed). */
const ACTIONS: readonly [action: string, change: RecordChange, fields?: string][] = [
  ['site-created', { site: SITE, expected: undefined }],
  ['site-changed', { site: { ...SITE, name: 'new' }, expected: SITE }, 'name'],
  ['site-disabled', { site: { ...DISABLED, name: 'new' }, expected: SITE }, 'name active'],
  ['site-enabled', { site: SITE, expected: DISABLED }, 'active'],
  ['site-changed', { site: { ...DISABLED, name: 'new' }, expected: DISABLED }, 'name'],
  ['site-deleted', { site: { ...SITE, deletedAt }, expected: SITE }, ''],
  ['key-created', { apiKey: KEY, expected: undefined }, ''],
  ['key-changed', { apiKey: { ...KEY, name: 'backend' }, expected: KEY }, 'name'],
  ['key-changed', { apiKey: { ...EXPIRING, name: 'backend' }, expected: EXPIRING }, 'name'],
  ['key-changed', { apiKey: EXPIRING, expected: KEY }, 'expiresAt'],
  ['key-revoked', { apiKey: REVOKED, expected: KEY }, 'revokedAt'],
  ['key-changed', { apiKey: { ...REVOKED, name: 'backend' }, expected: REVOKED }, 'name'],
  ['key-deleted', { apiKey: { ...REVOKED, deletedAt }, expected: REVOKED }, ''],
]

test('an entry has its action, author, subject and the fields that differ, and neither the secret nor its hash', () => {
  for (const [action, change, fields] of ACTIONS) {
    const entry = auditEntry(change, AUTHOR)
    assert.deepEqual([entry.action, entry.who, entry.how], [action, AUTHOR.who, AUTHOR.how])
    assert.equal(entry.siteKey, SITE.siteKey)
    assert.equal(entry.keyId, 'apiKey' in change ? KEY.id : undefined)
    assert.equal(entry.name, 'apiKey' in change ? change.apiKey.name : change.site.name)
    if (fields !== undefined) assert.equal(entry.changes.map(({ field }) => field).join(' '), fields)
    const text = JSON.stringify(entry)
    assert.ok(!text.includes(secretSha256) && !text.includes(secret), text)
    assert.equal(text.split(AUTHOR.who).length, 2, 'the author stands in it once')
  }
})

test('an entry names networks in place of the addresses in each of the three lists that may have some', () => {
  const one = ['10.0.0.1']
  const after = { ...SITE, ipRules: { allow: one, block: one }, known: { networks: one } }
  const { changes } = auditEntry({ site: after, expected: SITE }, AUTHOR)
  for (const { field, to } of changes) assert.deepEqual(to, ['10.0.0.0/24'], field)
  assert.equal(changes.length, 3)
})

test('the order of fields and a missing one that has a default are no change; an empty group of fields is left out', () => {
  const { siteKey, threshold: _, ...rest } = SITE
  const stored = Object.fromEntries(Object.entries({ siteKey, ...rest }).reverse()) as unknown as SiteRecord
  assert.deepEqual(siteChanges(stored, SITE), [])
  assert.equal(compileSite(stored).record.threshold, 0.5)
  const { siteKey: __, createdAt: ___, updatedAt: ____, ...settings } = SITE
  const all = { ...stored, limits: {}, failOpen: {}, scoreWeights: {} }
  assert.equal(JSON.stringify(completed(all)), JSON.stringify(settings))
})

test('an API key expires at `expiresAt`, not before; one without it, as older versions wrote, never', () => {
  assert.ok(!isExpired(KEY, Number.MAX_SAFE_INTEGER))
  assert.ok(!isExpired({ ...KEY, expiresAt: null }, Number.MAX_SAFE_INTEGER))
  assert.ok(!isExpired({ ...KEY, expiresAt: 1000 }, 999))
  assert.ok(isExpired({ ...KEY, expiresAt: 1000 }, 1000))
})

test("a site's own score weights replace the usual ones; a signal of weight 0 is no reason", () => {
  assert.deepEqual(compileSite(SITE).scoreWeights, SCORE_WEIGHTS)
  const { scoreWeights } = compileSite({ ...SITE, scoreWeights: { webdriver: 0 } })
  assert.deepEqual(scoreWeights, { ...SCORE_WEIGHTS, webdriver: 0 })
  const environment = { webdriver: true, noLanguages: true }
  const signals = { environment, solveTimeMs: undefined, elapsedMs: 400, difficulty: 18, addressFailures: 0 }
  assert.deepEqual(scoreOf(signals, scoreWeights).reasons, ['noLanguages'])
})

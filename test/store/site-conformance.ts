/** The conformance suite of stores for sites, API keys, their last uses, and the audit log, by two clients of one store. */

import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { siteLines } from '../../src/cli/views.ts'
import { type AuditEntry, type Author, auditEntry, type RecordChange } from '../../src/domain/audit.ts'
import {
  type ApiKeyRecord,
  compileSite,
  newSiteKey,
  SITE_DEFAULTS,
  type SiteRecord,
} from '../../src/domain/site.ts'
import { unknownFields } from '../../src/domain/site-fields.ts'
import { diffWithFile, exportFile } from '../../src/sites/export-file.ts'
import { parseExportFile } from '../../src/sites/parse-export-file.ts'
import { createApiKey, updateApiKey, updateSite } from '../../src/sites/sites.ts'
import { SiteDirectory } from '../../src/store/site-directory.ts'
import type { SiteStore } from '../../src/store/store.ts'
import { OperatorError } from '../../src/words/errors.ts'
import { mapOf, SITE, type TestStore } from './harness.ts'

const AUTHOR: Author = { who: 'alice at test', how: 'conformance' }
/** JSON, Lua and streams could go wrong in it. */
const NAME = 'näme "quoted" \\ 網站'
/** More entries than the suite writes. */
const ALL = 100_000

function siteOf(change: Partial<SiteRecord> = {}): SiteRecord {
  return {
    ...SITE_DEFAULTS,
    siteKey: newSiteKey(randomBytes(96)),
    name: NAME,
    plan: 'pro',
    origins: ['https://example.com'],
    ipRules: { allow: [], block: ['10.0.0.0/8'] },
    createdAt: 1,
    updatedAt: 1,
    ...change,
  }
}

let keys = 0

function keyOf(siteKey: string, change: Partial<ApiKeyRecord> = {}): ApiKeyRecord {
  const id = `key${(keys++).toString(36).padStart(5, '0')}`
  return { id, siteKey, secretSha256: 'f00d', createdAt: 1, expiresAt: null, revokedAt: null, ...change }
}

const write = (store: SiteStore, ...changes: RecordChange[]): Promise<boolean> =>
  store.commit(changes, AUTHOR)

const writeSite = (store: SiteStore, site: SiteRecord, expected?: SiteRecord): Promise<boolean> =>
  write(store, { site, expected })

export function siteConformance(under: () => TestStore): void {
  const store = () => under().store.sites
  const other = () => under().other.sites
  const auditOf = (siteKey: string) => other().readAudit({ siteKey, limit: ALL })

  test('a site that is made after its key was asked for in vain is found a second later', async () => {
    let now = 0
    const directory = new SiteDirectory(store(), () => now, { hasTestKeys: false })
    const site = siteOf()
    const load = () => new Promise(resolve => directory.sites.load(site.siteKey, resolve))
    assert.equal(await load(), null)
    assert.equal(directory.sites.cached(site.siteKey), null, 'remembered as unknown')
    assert.ok(await writeSite(other(), site))
    now = 1001
    assert.equal(directory.sites.cached(site.siteKey), undefined, 'forgotten, so it is asked for again')
    assert.notEqual(await load(), null)
    assert.equal(directory.sites.cached(site.siteKey)?.record.siteKey, site.siteKey)
  })

  test('fields of a later version are kept by every command, and exported', async () => {
    const later = { minAge: 3, limits: { verify: 5, burst: { of: 9 } } }
    const site = { ...siteOf(), ...later } as SiteRecord
    assert.ok(await writeSite(store(), site))
    const read = async () => (await store().readSite(site.siteKey)) as unknown as typeof later & SiteRecord
    const assertKept = async () => {
      const { minAge, limits } = await read()
      assert.deepEqual([minAge, limits.burst], [later.minAge, later.limits.burst])
    }
    await updateSite(store(), site.siteKey, { name: 'renamed' })
    await assertKept()
    await updateSite(store(), site.siteKey, { raise: { bits: 1, until: Date.now() + 60_000 } })
    await assertKept()
    const file = exportFile([await read()])
    const parsed = parseExportFile(Buffer.from(JSON.stringify(file)))
    const said = ('problems' in parsed ? parsed.problems : []).join('\n')
    for (const name of ['minAge', 'limits\\.burst'])
      assert.match(said, new RegExp(`^sites\\[0\\]\\.${name}: there is no such field`, 'm'))
    const entry = { ...SITE_DEFAULTS, siteKey: site.siteKey, name: 'applied' }
    const [isDry, nowMs] = [false, 2]
    const [change] = diffWithFile([entry], [await read()], 'stay', isDry, nowMs).changes
    assert.ok(await writeSite(store(), change!.after, change!.before))
    await assertKept()
    assert.deepEqual(unknownFields(compileSite(await read()).record), unknownFields(site), 'in a worker')
    assert.equal(
      compileSite({ ...site, limits: null } as unknown as SiteRecord).record.name,
      NAME,
      'null in place of a group',
    )
    const shown = new Map(siteLines(await read()))
    assert.equal(shown.get('minAge'), '3 (of a later version: kept, not used)')
    assert.match(shown.get('limits.burst')!, /^\{"of":9\} /)
  })

  test('a record that cannot be read holds up no other, and the copy of all records has no bound', async () => {
    const directory = new SiteDirectory(store(), () => 0, { hasTestKeys: false, isOfPrimary: true })
    await directory.refresh()
    const many = Array.from({ length: 100_001 }, () => keyOf(SITE)) // one more than a directory that is no copy remembers
    directory.remember({ sites: [], apiKeys: many.slice(1) })
    assert.ok(await write(other(), { apiKey: many[0]!, expected: undefined }))
    const [broken, site] = [siteOf({ ipRules: { allow: ['nowhere'], block: [] } }), siteOf()]
    for (const record of [broken, site]) assert.ok(await writeSite(other(), record))
    await directory.refresh()
    assert.ok(many.every(({ id }) => directory.apiKeys.cached(id)?.id === id))
    assert.equal(directory.sites.cached(broken.siteKey), undefined)
    assert.equal(directory.sites.cached(site.siteKey)?.record.siteKey, site.siteKey)
  })

  test('an older copy of the store does not bring back a revoked key', async () => {
    const directory = new SiteDirectory(store(), () => 0, { hasTestKeys: false, isOfPrimary: true })
    const site = siteOf({ updatedAt: Date.now() + 3_600_000 }) // by a host whose clock is ahead
    assert.ok(await writeSite(store(), site))
    const { record: key } = await createApiKey(store(), site.siteKey)
    const disabled = await updateSite(store(), site.siteKey, { active: false })
    assert.equal(disabled.updatedAt, site.updatedAt + 1)
    const revoked = await updateApiKey(store(), key.id, { revokedAt: Date.now() })
    await directory.refresh()
    assert.ok(await writeSite(store(), site, disabled))
    assert.ok(await store().commit([{ apiKey: key, expected: revoked }], AUTHOR))
    await directory.refresh()
    assert.equal(directory.sites.cached(site.siteKey)?.record.active, false)
    assert.equal(directory.apiKeys.cached(key.id)?.revokedAt, revoked.revokedAt)
    const { sites, apiKeys } = directory.lost
    assert.deepEqual([sites, apiKeys], [[disabled], [revoked]])
    await updateSite(store(), site.siteKey, { active: false })
    await directory.refresh()
    assert.deepEqual(directory.lost.sites, [], 'written anew, it is no older than the remembered copy')
    assert.deepEqual(directory.lost.apiKeys, [revoked])
  })

  test('a site is read as it was written, by every client', async () => {
    const more = { limits: { verify: 5 }, failOpen: { challenge: false }, scoreWeights: { webdriver: 1 } }
    for (const site of [siteOf(), siteOf(more)]) {
      assert.equal(await store().readSite(site.siteKey), undefined)
      assert.equal(await writeSite(store(), site), true)
      assert.deepEqual(await other().readSite(site.siteKey), site)
      assert.ok(compileSite(site).ipRules !== undefined)
    }
  })

  test('a site is changed only if nobody else changed it meanwhile', async () => {
    const site = siteOf()
    assert.equal(await writeSite(store(), site), true)
    assert.equal(await writeSite(store(), site), false)
    const renamed = { ...site, name: 'renamed' }
    assert.equal(await writeSite(other(), renamed, site), true)
    assert.equal(await writeSite(store(), { ...site, name: 'lost update' }, site), false)
    assert.deepEqual(await store().readSite(site.siteKey), renamed)
    assert.equal((await auditOf(site.siteKey)).length, 2, 'what was not written has no entry')
  })

  test('race: of 40 concurrent changes of a site by two clients, each has its audit entry, in order', async () => {
    const { siteKey } = siteOf()
    await writeSite(store(), siteOf({ siteKey }))
    const change = async (client: SiteStore, name: string, triesLeft = 100): Promise<unknown> => {
      return updateSite(client, siteKey, { name }, AUTHOR).catch(error => {
        // Somebody else was first, which 39 can be.
        assert.ok(error instanceof OperatorError && triesLeft > 0, String(error))
        return change(client, name, triesLeft - 1)
      })
    }
    const names = Array.from({ length: 40 }, (_, index) => `name ${index}`)
    await Promise.all(names.map((name, index) => change(index % 2 ? store() : other(), name)))
    const entries = (await auditOf(siteKey)).slice(1)
    const tos = entries.map(({ changes }) => changes[0]!.to)
    assert.deepEqual(tos.toSorted(), names.toSorted())
    const froms = entries.map(({ changes }) => changes[0]!.from)
    assert.deepEqual(froms, [NAME, ...tos.slice(0, -1)], 'each begins with what the one before wrote')
    assert.equal((await store().readSite(siteKey))!.name, tos.at(-1))
  })

  test('sites and API keys are listed, and a change is told once', async () => {
    const { revision } = await store().changesSince(undefined)
    const site = siteOf()
    const key = keyOf(site.siteKey, { name: 'backend', expiresAt: 2 })
    await writeSite(store(), site)
    await write(store(), { apiKey: key, expected: undefined })
    await writeSite(store(), { ...site, active: false }, site)
    const changes = await other().changesSince(revision)
    assert.deepEqual([changes.siteKeys, changes.apiKeyIds], [[site.siteKey], [key.id]])
    assert.deepEqual((await other().changesSince(changes.revision)).siteKeys, [])
    assert.equal(changes.isReplaced, false)
    const { isReplaced } = await store().changesSince(changes.revision + 1000)
    assert.equal(isReplaced, true, 'a revision that this store never had')
    assert.ok((await store().changesSince(0)).siteKeys.includes(site.siteKey))
    assert.ok((await other().listSites()).some(({ siteKey }) => siteKey === site.siteKey))
    const found = (await other().listApiKeys()).find(({ id }) => id === key.id)
    assert.deepEqual(found, key)
  })

  test('one commit writes all its sites, or none if one is not as expected', async () => {
    const [old, first, last] = [siteOf(), siteOf(), siteOf()]
    await writeSite(store(), old)
    const revision = (await store().changesSince(undefined)).revision
    const changed = { ...old, name: 'changed' }
    const good = { site: changed, expected: old }
    const bad = { site: changed, expected: { ...old, name: 'somebody else was here' } }
    const news: RecordChange[] = [first, last].map(site => ({ site, expected: undefined }))
    for (const at of [0, 1, 2]) {
      const changes = news.toSpliced(at, 0, bad)
      assert.equal(await write(other(), ...changes), false)
      assert.equal((await store().changesSince(revision)).revision, revision)
      for (const { siteKey } of [first, last]) {
        assert.equal(await store().readSite(siteKey), undefined)
        assert.deepEqual(await auditOf(siteKey), [])
      }
    }
    const key = keyOf(first.siteKey)
    const all = [news[0]!, good, { apiKey: key, expected: undefined }, news[1]!]
    assert.equal(await other().commit(all, AUTHOR, revision - 1), false, 'something changed since')
    assert.ok(await other().commit(all, AUTHOR, revision))
    const changes = await store().changesSince(revision)
    assert.deepEqual(changes.siteKeys, [first.siteKey, old.siteKey, last.siteKey])
    assert.deepEqual(changes.apiKeyIds, [key.id])
    assert.deepEqual(await store().readSite(old.siteKey), changed)
  })

  test('a site that an older version wrote can be changed', async () => {
    const site = siteOf()
    const key: ApiKeyRecord = { ...keyOf(site.siteKey) }
    delete key.expiresAt
    await write(store(), { site, expected: undefined }, { apiKey: key, expected: undefined })
    const limits = { verify: 1 }
    assert.deepEqual((await updateSite(other(), site.siteKey, { limits })).limits, limits)
    await updateApiKey(other(), key.id, { name: 'old' })
    const { updatedAt, ...named } = (await store().readApiKey(key.id))!
    assert.deepEqual(named, { ...key, name: 'old' })
    assert.ok(updatedAt! > key.createdAt)
    await updateSite(store(), site.siteKey, { limits: {} })
    const { updatedAt: _, ...back } = (await other().readSite(site.siteKey))!
    const { updatedAt: __, ...first } = site
    assert.deepEqual(back, first)
  })

  test('the audit log has what each change is told to be, and when it was made', async () => {
    const site = siteOf()
    const startedAt = Date.now()
    const key = keyOf(site.siteKey, { expiresAt: Date.UTC(2027, 0, 31) })
    const changes: RecordChange[] = [
      { site, expected: undefined },
      { apiKey: key, expected: undefined },
      { site: { ...site, active: false, updatedAt: 3 }, expected: site },
      { apiKey: { ...key, revokedAt: Date.UTC(2026, 11, 24) }, expected: key },
    ]
    for (const change of changes) await write(store(), change)
    const entries = await auditOf(site.siteKey)
    assert.ok(entries.every(({ at }) => at >= startedAt - 1000 && at <= Date.now() + 1000))
    const told = changes.map((change, index) => ({ at: entries[index]!.at, ...auditEntry(change, AUTHOR) }))
    assert.deepEqual(entries, told)
  })

  test('the audit log is read newest last, by site, by number and by time', async () => {
    const [mine, others] = [siteOf(), siteOf()]
    let before = mine
    await writeSite(store(), mine)
    for (let step = 1; step <= 6; step++) {
      const after = { ...before, threshold: step / 10 }
      await writeSite(step % 2 ? store() : other(), after, before)
      await writeSite(store(), siteOf({ siteKey: others.siteKey, threshold: step }), undefined)
      before = after
    }
    const thresholds = (entries: readonly AuditEntry[]) => entries.map(({ changes }) => changes[0]?.to)
    const entries = await auditOf(mine.siteKey)
    assert.deepEqual(thresholds(entries.slice(1)), [0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    assert.deepEqual(thresholds(await store().readAudit({ siteKey: mine.siteKey, limit: 2 })), [0.5, 0.6])
    assert.deepEqual(await store().readAudit({ siteKey: mine.siteKey, limit: 0 }), [])
    const all = await store().readAudit({ limit: ALL })
    assert.deepEqual(await store().readAudit({ limit: 3 }), all.slice(-3))
    for (let index = 1; index < all.length; index++) assert.ok(all[index]!.at >= all[index - 1]!.at)
    const sinceMs = entries[3]!.at
    const since = all.filter(({ at }) => at >= sinceMs)
    assert.deepEqual(await store().readAudit({ limit: ALL, sinceMs }), since)
    assert.deepEqual(await store().readAudit({ limit: ALL, sinceMs: Date.now() + 60_000 }), [])
    // Before 1970, as the longest retention (POWGATE_AUDIT_DAYS, a century) gives.
    await store().dropAudit(-1)
    assert.deepEqual(await store().readAudit({ limit: ALL, sinceMs: -1 }), all)
  })

  test('entries older than the retention are dropped, and none of later; records stay', async () => {
    const [old, young] = [siteOf(), siteOf()]
    await writeSite(store(), old)
    const [entry] = await auditOf(old.siteKey)
    await store().dropAudit(entry!.at)
    assert.equal((await auditOf(old.siteKey)).length, 1, 'not yet')
    while (Date.now() <= entry!.at); // or both entries could have the same millisecond
    await writeSite(other(), young)
    await store().dropAudit(entry!.at + 1)
    const left = await store().readAudit({ limit: ALL })
    assert.deepEqual([left.length, left[0]!.siteKey], [1, young.siteKey])
    assert.deepEqual(await other().readAudit({ limit: ALL }), left)
    assert.deepEqual(await store().readSite(old.siteKey), old)
    await writeSite(store(), { ...young, threshold: 0.1 }, young)
    assert.equal((await auditOf(young.siteKey)).length, 2, 'and the log goes on')
  })

  test('400 sites in one commit; a site is found behind more than a thousand entries of others', async () => {
    const mine = siteOf()
    await writeSite(store(), mine)
    const many = Array.from({ length: 1200 }, () => ({ site: siteOf(), expected: undefined }))
    for (let start = 0; start < 1200; start += 400)
      assert.equal(await write(store(), ...many.slice(start, start + 400)), true)
    assert.equal((await auditOf(mine.siteKey)).length, 1)
    assert.equal((await store().readAudit({ limit: 1200 })).length, 1200)
    const listed = new Set((await other().listSites()).map(({ siteKey }) => siteKey))
    assert.ok(many.every(({ site }) => listed.has(site.siteKey)))
  })

  test('the last use of an API key is the latest that was noted, and is no change of the key', async () => {
    const { revision } = await store().changesSince(undefined)
    const ids = ['use00001', 'use00002', 'use00003']
    assert.deepEqual(await store().readUses(ids), new Map())
    assert.deepEqual(await store().readUses([]), new Map())
    await store().noteUses(mapOf({ use00001: 1000, use00002: 2000 }))
    await other().noteUses(mapOf({ use00001: 1500, use00002: 1999 }))
    await other().noteUses(new Map())
    for (const client of [store(), other()])
      assert.deepEqual(await client.readUses(ids), mapOf({ use00001: 1500, use00002: 2000 }))
    assert.equal((await store().changesSince(revision)).revision, revision)
  })

  test('race: the latest of 40 concurrent notes stays', async () => {
    const times = Array.from({ length: 40 }, (_, index) => 1_795_000_000_000 + ((index * 7) % 40))
    await Promise.all(
      times.map((time, index) => (index % 2 ? store() : other()).noteUses(new Map([['use00009', time]]))),
    )
    assert.equal((await store().readUses(['use00009'])).get('use00009'), Math.max(...times))
  })

  test('last uses of a thousand API keys', async () => {
    const uses = new Map(Array.from({ length: 1000 }, (_, index) => [`many${index}`, 5000 + index]))
    await store().noteUses(uses)
    assert.deepEqual(await other().readUses([...uses.keys()]), uses)
  })
}

/**
 * `powgate apply`, `site export`, `site schema` and `audit`, as a person or a pipeline runs them. The tests of a store form a chain, so
 * none runs alone: the first finds the sites `shop` and `blog`, later ones the sites that tests before them left, which they name.
 */

import assert from 'node:assert/strict'
import { hostname, userInfo } from 'node:os'
import { join } from 'node:path'
import { before, describe, test } from 'node:test'
import { Ajv } from 'ajv'
import { loadConfig } from '../../src/config/config.ts'
import { DEMO_SITE_KEYS, isNotDemo, prepareDemoSites } from '../../src/demo/site.ts'
import type { AuditEntry, FieldChange } from '../../src/domain/audit.ts'
import type { SiteRecord } from '../../src/domain/site.ts'
import { createSite } from '../../src/sites/sites.ts'
import { openSiteStore } from '../../src/store/open.ts'
import type { SiteStore } from '../../src/store/store.ts'
import { Powgate, storeOf, written } from '../cli/cli-process.ts'
import { STORE_KINDS } from '../harness/service.ts'
import { temporaryDir } from '../harness/temporary.ts'

const HEAD = { format: 'powgate-sites', version: 1 }
const SECRET = 'a test secret of more than thirty-two characters'
const ACTOR = 'deploy pipeline'
const WHO = `${ACTOR} at ${hostname()}`

const dir = temporaryDir('apply')
const dataDir = temporaryDir('apply-data')

let files = 0

function fileOf(document: unknown): string {
  const text = typeof document === 'string' ? document : JSON.stringify(document)
  return written(join(dir, `sites-${files++}.json`), text)
}

const names = (file: { sites: readonly Record<string, unknown>[] }) => file.sites.map(({ name }) => name)

/** A line for each entry: who made it and how, what it did, and to which site or key. */
const auditLines = (entries: readonly AuditEntry[]) =>
  entries.map(({ who, how, action, siteKey, keyId }) => `${who}, ${how}: ${action} ${keyId ?? siteKey}`)

type Made = { readonly name: string; readonly apiKey?: string }
/** An API key is `sk_ID_SECRET`; the secret may contain `_`. */
const partsOf = (apiKey: string) => ({ id: apiKey.slice(3, 11), secret: apiKey.slice(12) })
const isOf = (siteKey: string) => (key: { readonly siteKey: string }) => key.siteKey === siteKey

describe('apply', { concurrency: true }, () => {
  for (const kind of STORE_KINDS) {
    describe(`on the ${kind} store`, { concurrency: false }, () => {
      let env: Record<string, string>
      let powgate: Powgate
      let shop: SiteRecord
      let apiKey: string
      /** Where the store is, as commands tell it. */
      let place: string
      /** What `site export` gave in the first test. */
      let exported: { sites: Record<string, unknown>[] }
      /** A store of the other kind, which has the whole export. */
      let there: Powgate

      async function onStore<Result>(action: (store: SiteStore) => Promise<Result>): Promise<Result> {
        const store = await openSiteStore(loadConfig({ POWGATE_SECRETS: SECRET, ...env }))
        return action(store).finally(() => store.close())
      }
      const allSites = () => onStore(store => store.listSites())
      const audit = (): Promise<AuditEntry[]> => onStore(store => store.readAudit({ limit: 1000 }))
      const site = async (siteKey: string) => (await allSites()).find(one => one.siteKey === siteKey)!

      before(async () => {
        ;({ env, place } = await storeOf(kind, dataDir))
        powgate = new Powgate({ ...env, POWGATE_ACTOR: ACTOR })
        const author = { who: 'powgate', how: 'demo page' }
        await onStore(store => prepareDemoSites(store, SECRET, author))
        const options = { name: 'shop', origins: ['https://shop.example'], scoreWeights: { webdriver: 1 } }
        ;({ site: shop, apiKey } = await onStore(store => createSite(store, options)))
        await onStore(store => createSite(store, { name: 'blog', active: false }))
      })

      test('an export has all but the demo page, is by the schema, and applying it changes nothing', async () => {
        const text = await powgate.text('site export')
        exported = JSON.parse(text)
        assert.equal(text, `${JSON.stringify(exported, undefined, 2)}\n`)
        const { siteKey, createdAt: _, updatedAt: __, ...settings } = shop
        assert.deepEqual({ ...exported, sites: undefined }, { ...HEAD, sites: undefined })
        assert.deepEqual(exported.sites[0], { siteKey, ...settings })
        assert.deepEqual(names(exported), ['shop', 'blog'])
        assert.doesNotMatch(text, /sk_|[0-9a-f]{64}/)
        const schema = await powgate.json('site schema')
        const check = new Ajv({ strict: true }).compile(schema)
        assert.ok(check(exported), JSON.stringify(check.errors))
        assert.ok(!check({ ...exported, sites: [{ ...exported.sites[0], threshold: 2 }] }))

        const [sites, entries] = [await allSites(), await audit()]
        const plan = await powgate.json('apply -f', fileOf(text), '--disable-missing')
        assert.deepEqual(plan, { dryRun: false, changed: [], unchanged: 2, store: place })
        const said = await powgate.text('apply -f', fileOf(text))
        assert.match(said, /^There is nothing to change in .+: 2 sites are as the file says\.\n$/)
        assert.deepEqual([await allSites(), await audit()], [sites, entries], 'nothing was written')
      })

      test('an export of some sites', async () => {
        const some = await powgate.json('site export', [...DEMO_SITE_KEYS][0]!, shop.siteKey, shop.siteKey)
        assert.deepEqual(names(some), ['demo page', 'shop'])
      })

      test('a dry run says what would change, and writes nothing; then apply does just that, once', async () => {
        const origins = ['https://shop.example', 'https://b.example']
        const changed = { ...exported.sites[0], origins, limits: { verify: 7 } }
        const news = { name: 'news', plan: 'pro', ipRules: { block: ['10.0.0.0/8'] } }
        const file = fileOf({ ...HEAD, sites: [changed, news] })
        const [sites, entries] = [await allSites(), await audit()]
        const said = await powgate.text('apply --file', file, '--dry-run')
        for (const line of [
          `shop (${shop.siteKey}): would be changed`,
          '    origins: [https://shop.example] -> [https://shop.example, https://b.example]',
          '    limits.verify: - -> 7',
          'news (with a new key): would be created',
          '    ipRules.block: [10.0.0.0/8]',
          `Nothing was written. It would be in ${place}: 1 created, 1 changed; 0 as the file says already.`,
        ])
          assert.ok(said.split('\n').includes(line), line)
        const dry = await powgate.json('apply --file', file, '--dry-run')
        assert.deepEqual([await allSites(), await audit()], [sites, entries], 'nothing was written')

        const done = await powgate.json('apply --file', file)
        const [changedShop, createdNews] = done.changed
        assert.deepEqual(changedShop.changes, [
          { field: 'origins', from: ['https://shop.example'], to: origins },
          { field: 'limits.verify', from: null, to: 7 },
        ])
        const newKey: string = createdNews.siteKey
        assert.match(newKey, /^site_[0-9A-Za-z]{22}$/)
        const planned = [changedShop, { ...createdNews, siteKey: null }] // the key is drawn when it is written
        assert.deepEqual(dry, { ...done, dryRun: true, changed: planned })
        assert.deepEqual((await site(shop.siteKey)).limits, { verify: 7 })
        const { name, plan, ipRules } = await site(newKey)
        assert.deepEqual({ name, plan, ipRules }, { ...news, ipRules: { allow: [], block: ['10.0.0.0/8'] } })
        const added = (await audit()).slice(entries.length)
        const changes = [`site-changed ${shop.siteKey}`, `site-created ${newKey}`]
        const expected = changes.map(change => `${WHO}, apply: ${change}`)
        assert.deepEqual(auditLines(added), expected)
        const fieldsOf = (all: readonly { changes: readonly FieldChange[] }[]) => all.map(one => one.changes)
        assert.deepEqual(fieldsOf(added), fieldsOf(done.changed))
        const again = await powgate.json('apply --file', file)
        assert.deepEqual(again, { dryRun: false, changed: [], unchanged: 2, store: place })
        assert.equal((await audit()).length, entries.length + added.length)
      })

      test('from standard input: what an entry leaves out is default again; missing sites are disabled', async () => {
        const wanted = [{ siteKey: shop.siteKey, name: 'shop' }, { name: 'more' }]
        const input = JSON.stringify({ ...HEAD, sites: wanted })
        const run = await powgate.runWithInput(input, 'apply', '-f', '-', '--disable-missing')
        assert.deepEqual([run.code, run.err], [0, ''])
        assert.match(run.out, /^ {4}scoreWeights\.webdriver: 1 -> -$/m)
        assert.match(run.out, /^news \(site_\w+\): disabled\n {4}active: true -> false$/m)
        assert.match(run.out, /^In .+: 1 created, 1 changed, 1 disabled; 0 as the file says already\.$/m)
        const sites = await allSites()
        const more = sites.find(({ name }) => name === 'more')!
        assert.ok(run.out.endsWith(`have no API key yet:\n\n  powgate key create ${more.siteKey}\n`))
        const states = Object.fromEntries(sites.map(({ name, active }) => [name, active]))
        const demos = { 'demo page': true, 'demo page, HashWX': true }
        assert.deepEqual(states, { shop: true, more: true, blog: false, news: false, ...demos })
        assert.deepEqual(await powgate.json('key list', more.siteKey), [])
      })

      test('a file with mistakes: a line for each, exit code 1, and nothing is written', async () => {
        const [sites, entries] = [await allSites(), await audit()]
        const good = { name: 'would be new' }
        const refused = async (document: unknown) => {
          const run = await powgate.run('apply -f', fileOf(document))
          assert.deepEqual([run.code, run.out], [1, ''])
          assert.equal(run.problems.at(-1), 'nothing was written')
          return run.problems.slice(0, -1)
        }
        // All mistakes of a file are in export-file.test.ts; these two are found in different steps.
        for (const [site, line] of [
          [{ name: 'x', threshold: 2 }, /threshold: expected a number from 0 to 1, got 2$/],
          [{ name: 'shop', ipRules: { allow: ['::1'] } }, /ipRules\.allow: expected plan pro, got free$/],
        ] as const)
          assert.match((await refused({ ...HEAD, sites: [good, site] })).join(), line)
        const many = await refused({ ...HEAD, sites: Array.from({ length: 150 }, () => 5) })
        assert.deepEqual([many.length, many.at(-1)], [101, 'and 50 more'])
        const none = await powgate.problem(1, 'apply -f', join(dir, 'none.json'))
        assert.match(none, /^--file: cannot read .*none\.json: it does not exist$/)
        assert.match(await powgate.problem(1, 'apply -f', dir), /^--file: cannot read .*: it is a directory$/)
        assert.deepEqual([await allSites(), await audit()], [sites, entries])
      })

      test('text of the store with line breaks or escape sequences stays in its line, and commands no terminal', async () => {
        const odd = { who: 'eve\n2026-01-01T00:00:00Z  site disabled by root\x1b[2K', how: '\u009b1A\u202e' }
        const name = kind === 'redis' ? 'a\nb\x1b[1A' : 'a' // the embedded store checks names, because people edit its file
        const { siteKey } = (await onStore(store => createSite(store, { name }, odd))).site
        const said = (await powgate.text('audit --site', siteKey)).split('\n')
        assert.equal(said.filter(line => /^\d{4}-/.test(line)).length, 2, 'site-created and key-created')
        assert.match(said.at(-2)!, / by eve\?2026-01-01T00:00:00Z {2}site disabled by root\?\[2K \(\?1A\?\)$/)
        const shown = [await powgate.text('site list'), await powgate.text('site show', siteKey)]
        const json = await powgate.text(`audit --site ${siteKey} --json`)
        for (const text of [...said, ...shown, json]) assert.doesNotMatch(text, /[^\P{Cc}\n]|\u202e/u)
        assert.equal(JSON.parse(json)[0].how, odd.how)
        const createdAt = 1e18 // no Date is so late
        const apiKey = { id: 'timeless', siteKey, secretSha256: 'f00d', createdAt, revokedAt: null }
        await onStore(store => store.commit([{ apiKey, expected: undefined }], odd))
        assert.match(await powgate.text('key list', siteKey), /^timeless +\S+ +- +- +- +valid$/m)
      })

      test('the audit log has an entry for each change by a command, with who and how; what changes nothing has none', async () => {
        const { siteKey, apiKeyId } = await powgate.json('site create --name fresh')
        const by = (actor: string) => powgate.with({ POWGATE_ACTOR: actor })
        for (let times = 0; times < 2; times++)
          await by('alice').text(`site update ${siteKey} --threshold 0.7`)
        await by('alice').with({ SUDO_USER: 'bob' }).text('site disable', siteKey)
        await by('').with({ SUDO_USER: 'bob' }).text('site enable', siteKey)
        const { id } = await by('').json(`key create ${siteKey} --name backend`)
        await powgate.text('key update', id, '--name', 'front end')
        await powgate.text('key revoke', id)
        const entries: AuditEntry[] = await powgate.json('audit --site', siteKey)
        assert.deepEqual(
          auditLines(entries).map(entry => entry.replace(` at ${hostname()}`, '')),
          [
            `${ACTOR}, site create: site-created ${siteKey}`,
            `${ACTOR}, site create: key-created ${apiKeyId}`,
            `alice, site update: site-changed ${siteKey}`,
            `alice, site disable: site-disabled ${siteKey}`,
            `bob, site enable: site-enabled ${siteKey}`,
            `${userInfo().username}, key create: key-created ${id}`,
            `${ACTOR}, key update: key-changed ${id}`,
            `${ACTOR}, key revoke: key-revoked ${id}`,
          ],
        )
        const text = await powgate.text(`audit --site ${siteKey} --limit 2 --since 1h`)
        const time = '\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\dZ'
        const keyLine = (what: string, command: string) =>
          `${time}  key ${what} ${id} "front end" of ${siteKey}  by ${WHO} \\(key ${command}\\)\n`
        const [first, second] = [keyLine('changed', 'update'), keyLine('revoked', 'revoke')]
        const expected = `^${first}    name: backend -> front end\n${second}    revokedAt: - -> \\S+Z\n$`
        assert.match(text, new RegExp(expected))
        const none = await powgate.text(`audit --site ${siteKey} --since 9998-01-01`)
        assert.equal(none, 'There are no such changes.\n')
        const everything = JSON.stringify(await audit())
        assert.ok(!everything.includes(partsOf(apiKey).secret) && !/[0-9a-f]{64}/.test(everything))
      })

      test('site delete asks for the name, takes the API keys along, and leaves a site key that no file makes again', async () => {
        const { site, apiKey } = await onStore(store => createSite(store, { name: 'old shop' }))
        const { siteKey } = site
        const line = await powgate.problem(1, 'site delete', siteKey)
        assert.match(line, /^--name: expected "old shop", .* its 1 API key, the audit log stays$/)
        const gone = await powgate.json('site delete', siteKey, '--name', 'old shop')
        assert.deepEqual(gone, { siteKey, name: 'old shop', apiKeys: 1, store: place })
        assert.ok(!(await allSites()).some(one => one.siteKey === siteKey))
        assert.deepEqual(await powgate.json('key list').then(keys => keys.filter(isOf(siteKey))), [])
        for (const call of ['site show', 'site enable', 'key create', 'key list'])
          assert.match(await powgate.problem(1, call, siteKey), /^the site \S+ was deleted at \d{4}-/)
        const file = fileOf({ ...HEAD, sites: [{ siteKey, name: 'old shop' }] })
        const { problems, code } = await powgate.run('apply -f', file)
        assert.equal(code, 1)
        const deleted = `sites: ${siteKey} was deleted, and its key is not made again: take it and its apiKeys out of the file`
        assert.equal(problems[0], deleted)
        const actions = (await powgate.json('audit --site', siteKey)).map(({ action }: AuditEntry) => action)
        assert.deepEqual(actions, ['site-created', 'key-created', 'site-deleted', 'key-deleted'])
        const key = await onStore(store => store.readApiKey(partsOf(apiKey).id))
        assert.notEqual(key!.revokedAt, null)
        assert.equal((await onStore(store => store.readSite(siteKey)))!.active, false)
      })

      test('apply makes the keys that a file names and no valid key has, prints them once, and takes others by their hashes', async () => {
        const siteKey = `site_${'k'.repeat(22)}`
        const [secretSha256, keys] = ['ab'.repeat(32), ['backend', 'batch']]
        const content = {
          ...HEAD,
          sites: [
            { siteKey, name: 'with keys', keys },
            { name: 'drawn', keys: ['backend'] },
          ],
          apiKeys: [
            { id: 'handmade', siteKey, name: 'batch', secretSha256 },
            { id: 'outdated', siteKey, name: 'backend', secretSha256, expiresAt: 1 },
          ],
        }
        const file = fileOf(content)
        const wouldBe = await powgate.json('apply --dry-run -f', file)
        const keysToBe = [siteKey, null].map(siteKey => ({ siteKey, name: 'backend' }))
        assert.deepEqual(wouldBe.apiKeysMade, keysToBe)
        const dry = await powgate.text('apply --dry-run -f', file)
        assert.match(dry, /^API key backend of drawn: would be made$/m)
        const { apiKeysMade, apiKeysAdded } = await powgate.json('apply -f', file)
        assert.deepEqual(apiKeysAdded, ['handmade', 'outdated'])
        for (const { apiKey } of apiKeysMade) assert.match(apiKey, /^sk_\w{8}_[\w-]{43}$/)
        const [handmade] = content.apiKeys
        const edited = (more: object) => fileOf({ ...content, apiKeys: [{ ...handmade, ...more }] })
        const problemOf = async (more: object) => (await powgate.run('apply -f', edited(more))).err
        const stays = /^apiKeys: handmade is in the store with another site or secretSha256, and stays so/
        assert.match(await problemOf({ secretSha256: 'cd'.repeat(32) }), stays)
        for (const [more, field] of [
          [{ name: 'other' }, 'name'],
          [{ expiresAt: 2 }, 'expiresAt'],
          [{ createdAt: 1, name: 'outdated', revokedAt: 3 }, 'revokedAt'], // of an older copy only a revocation counts
        ] as const) {
          const other = new RegExp(`^apiKeys: handmade has another ${field} in the store, .* or powgate key `)
          assert.match(await problemOf(more), other)
        }
        await powgate.text('apply --dry-run -f', edited({ createdAt: 1, name: 'outdated' }))
        const keysNow = (await powgate.json('key list')).filter(isOf(siteKey))
        const namesNow = keysNow.map(({ name }: Made) => name).sort()
        assert.deepEqual(namesNow, ['backend', 'backend', 'batch'], 'one made, `outdated`, `handmade`')
        await powgate.text('key revoke handmade')
        for (const more of [{ name: 'other' }, { createdAt: 1, updatedAt: Date.now() + 1e9 }]) {
          const revived = await problemOf({ ...more, revokedAt: null })
          assert.match(revived, /^apiKeys: handmade has another revokedAt in the .*: change the file\n/)
        }
        const again = await powgate.json('apply -f', file)
        assert.equal(again.apiKeysAdded, undefined)
        const remade = again.apiKeysMade.map(({ name }: Made) => name)
        assert.deepEqual(remade, ['batch'], 'the one that was revoked')
        const more = fileOf({ ...HEAD, sites: [{ siteKey, name: 'with keys', keys: ['backend', 'more'] }] })
        const said = await powgate.text('apply -f', more)
        assert.match(said, /^In .+: 1 API key made; 1 as the file says already\.$/m)
      })

      /** The file that the next tests prune by. `shop`, which it lacks, is deleted. */
      const twoSites = async () => {
        const kept = (await allSites()).filter(({ name }) => name === 'with keys' || name === 'drawn')
        return { ...HEAD, sites: kept.map(({ siteKey, name }) => ({ siteKey, name })) }
      }

      test('--prune and --disable-missing refuse each other, a file without sites, and keys of a site that it lacks', async () => {
        const content = await twoSites()
        const both = await powgate.problem(2, 'apply --prune --disable-missing -f', fileOf(content))
        assert.match(both, /expected one of the two/)
        for (const flag of ['--prune', '--disable-missing']) {
          const { err, code } = await powgate.run('apply', flag, '-f', fileOf({ ...HEAD, sites: [] }))
          assert.deepEqual([code, /^sites: the file has none, .*\nnothing was written/.test(err)], [1, true])
        }
        const key = { id: 'latelate', siteKey: shop.siteKey, name: 'late', secretSha256: '0'.repeat(64) }
        const refused = await powgate.run('apply --prune -f', fileOf({ ...content, apiKeys: [key] }))
        assert.match(refused.err, /expected the site of latelate in the file.*\nnothing was written/)
      })

      test('apply --prune deletes the sites that a file does not name, but not the demo page', async () => {
        const content = await twoSites()
        const file = fileOf(content)
        assert.match(await powgate.text('apply --prune --dry-run -f', file), /would be deleted/)
        assert.match(await powgate.text('apply --prune -f', file), /\d+ deleted/)
        const left = (await allSites()).map(({ siteKey }) => siteKey)
        const kept = content.sites.map(({ siteKey }) => siteKey)
        assert.deepEqual(left.sort(), [...kept, ...DEMO_SITE_KEYS].sort())
        const apiKeysLeft = await onStore(store => store.listApiKeys())
        assert.ok(apiKeysLeft.every(({ siteKey }) => left.includes(siteKey)))
        const keyOfShop = { id: partsOf(apiKey).id, siteKey: kept[0], secretSha256: '0'.repeat(64) }
        const { err } = await powgate.run('apply -f', fileOf({ ...content, apiKeys: [keyOfShop] }))
        assert.match(err, /^apiKeys: \w+ was deleted with its site, and is not made again\n/)
      })

      test('a whole export takes sites and API keys to a store of the other kind as they are, with their times', async () => {
        const drawn = (await allSites()).find(({ name }) => name === 'drawn')!
        await powgate.text(`site update ${drawn.siteKey} --plan pro --block 10.0.0.0/8`)
        await powgate.text(`site update ${drawn.siteKey} --plan free`) // and the list stays, without effect
        const file = fileOf(await powgate.text('site export --whole'))
        const otherKind = STORE_KINDS.find(one => one !== kind)!
        const other = await storeOf(otherKind, temporaryDir('apply-other'))
        there = new Powgate({ ...other.env, POWGATE_ACTOR: ACTOR })
        await there.text('apply -f', file)
        const config = loadConfig({ POWGATE_SECRETS: SECRET, ...other.env })
        const recordsOf = async (store: SiteStore) => {
          const sites = (await store.listSites()).filter(isNotDemo).map(one => [one.siteKey, one] as const)
          const apiKeys = (await store.listApiKeys()).filter(isNotDemo).map(key => [key.id, key] as const)
          return { sites: new Map(sites), apiKeys: new Map(apiKeys) }
        }
        const target = await openSiteStore(config)
        assert.deepEqual(await recordsOf(target).finally(() => target.close()), await onStore(recordsOf))
        const actions = (await there.json('audit --limit 1000')).map(({ action }: AuditEntry) => action)
        assert.deepEqual([...new Set(actions)], ['site-created', 'key-created'])
        assert.match(await there.text('apply --prune -f', file), /^There is nothing to change in /)
      })

      test('a newer copy of a site is taken with its time, and a deletion if it is newer than the site', async () => {
        // A service that remembers these counts the sites as lost until the store has them with this time.
        const [newer] = (await powgate.json('site export --whole')).sites
        newer.updatedAt += 1e9
        const newerFile = fileOf({ ...HEAD, sites: [newer] })
        const [change] = (await there.json('apply -f', newerFile)).changed
        assert.deepEqual([change.action, change.changes], ['change', []])
        assert.equal((await there.json('site show', newer.siteKey)).updatedAt, newer.updatedAt)
        assert.match(await there.text('apply -f', newerFile), /^There is nothing to change in /)
        const { siteKey, updatedAt } = newer
        const deletedAt = (ms: number) =>
          fileOf({ ...HEAD, sites: [], deletedSites: [{ siteKey, updatedAt: ms }] })
        assert.match(await there.text('apply -f', deletedAt(updatedAt)), /^There is nothing to change in /)
        const deleting = deletedAt(updatedAt + 1)
        const { err } = await there.run('apply --disable-missing -f', deleting)
        const others = (await there.json('site list')).filter(isNotDemo).length - 1
        assert.ok(err.includes(`every site would be disabled (${others})`), 'others than the deleted one')
        assert.match(await there.text('apply -f', deleting), /: deleted\n/)
      })
    })
  }
})

/** The commands for sites and keys on both stores, and the errors of calls that fail. cli-usage.test.ts has help and misuse. */

import assert from 'node:assert/strict'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { before, describe, test } from 'node:test'
import type { AuditEntry } from '../../src/domain/audit.ts'
import { SITE_DEFAULTS } from '../../src/domain/site.ts'
import { freePort } from '../harness/ports.ts'
import { RedisServer } from '../harness/redis.ts'
import { STORE_KINDS } from '../harness/service.ts'
import { temporaryDir } from '../harness/temporary.ts'
import { words } from '../harness/values.ts'
import { Powgate, storeOf, written } from './cli-process.ts'

const SITE_KEY = /^site_[0-9A-Za-z]{22}$/
const API_KEY = /^sk_[0-9A-Za-z]{8}_[\w-]{43}$/
const UNKNOWN_SITE = 'site_0123456789ABCDEFabcdef'

const dir = temporaryDir('cli')

/** The tests of a store add sites to it, one after the other, and list those of the tests before. */
for (const kind of STORE_KINDS) {
  describe(`on the ${kind} store`, () => {
    let powgate: Powgate
    let place: string

    before(async () => {
      // POWGATE_SECRETS is missing with Redis, because the service needs it and the commands do not.
      const store = await storeOf(kind, dir)
      powgate = new Powgate(store.env)
      place = store.place
    })

    test('a store without sites', async () => {
      assert.deepEqual(await powgate.json('site list'), [])
      assert.match(await powgate.text('site list'), /^There are no sites yet in .+: powgate site .+\n$/)
      assert.deepEqual(await powgate.json('key list'), [])
      assert.equal(await powgate.text('key list'), 'There are no API keys.\n')
    })

    test('a site with defaults, as JSON; an origin that others can have too is warned of', async () => {
      const first = await powgate.json('site create --name', ' first ')
      const { siteKey, apiKey, apiKeyId, createdAt, updatedAt, store, warnings, ...rest } = first
      assert.equal(store, place)
      assert.deepEqual(warnings, [])
      assert.match(siteKey, SITE_KEY)
      assert.match(apiKey, API_KEY)
      assert.equal(apiKeyId, apiKey.slice(3, 11))
      assert.ok(Math.abs(Date.now() - createdAt) < 60_000)
      assert.equal(updatedAt, createdAt)
      assert.deepEqual(rest, { ...SITE_DEFAULTS, name: 'first' })
      const shown = await powgate.json('site show', siteKey)
      const unused = { expiresAt: null, revokedAt: null, lastUsedAt: null }
      assert.deepEqual(shown.apiKeys, [{ id: apiKeyId, name: null, state: 'valid', createdAt, ...unused }])
      assert.doesNotMatch(JSON.stringify(shown), /sk_|secret|[0-9a-f]{64}/i)
      const { apiKeys: _, traffic, ...site } = shown
      assert.deepEqual(traffic, {})
      assert.deepEqual(site, { siteKey, createdAt, updatedAt, ...rest })
      assert.deepEqual(await powgate.json('site list'), [site])
      const openToMany = await powgate.json(`site update ${siteKey} --origin https://*.vercel.app`)
      assert.match(openToMany.warnings[0], /vercel\.app/, 'where anybody can get a name')
    })

    test('API keys: created, listed, revoked once', async () => {
      const site = await powgate.json('site create --name fifth')
      const { siteKey } = site
      const second = await powgate.json('key create', siteKey)
      assert.match(second.apiKey, API_KEY)
      assert.deepEqual([second.siteKey, second.id], [siteKey, second.apiKey.slice(3, 11)])
      assert.deepEqual([second.name, second.expiresAt], [null, null])
      const created = await powgate.text('key create', siteKey)
      assert.match(created, /not shown again/)
      assert.ok(created.startsWith(`The API key was created in ${place}. `))
      const third = /API key +(sk_\S+)/.exec(created)![1]!
      assert.match(third, API_KEY)
      const ids = [site.apiKeyId, second.id, third.slice(3, 11)]

      const revoked = await powgate.json('key revoke', second.id)
      assert.equal(revoked.id, second.id)
      assert.ok(revoked.revokedAt >= revoked.createdAt)
      const listed = await powgate.json('key list', siteKey)
      for (const [index, revokedAt] of [null, revoked.revokedAt, null].entries())
        assert.deepEqual([listed[index].id, listed[index].revokedAt], [ids[index], revokedAt])
      assert.equal(listed.length, 3)
      assert.doesNotMatch(JSON.stringify(listed), /sk_|secret|[0-9a-f]{64}/i)
      const text = await powgate.text('key list', siteKey)
      const found = text.split('\n').map(line => /^(\S+).* - +(valid|revoked .*Z)$/.exec(line)?.[1])
      assert.deepEqual(found, [undefined, ...ids, undefined])
      const all = await powgate.json('key list')
      assert.ok(all.length > ids.length)
      for (const id of ids) assert.ok(all.some((key: { id: string }) => key.id === id))

      const said = await powgate.text('key revoke', ids[2]!)
      assert.equal(said, `In ${place} the API key ${ids[2]} of ${siteKey} is revoked.\n`)
      assert.match(await powgate.problem(1, 'key revoke', ids[2]!), /is revoked already/)
    })

    // What follows is the same code on either store: test/store/site-conformance.ts tests the stores.
    if (kind === 'redis') return

    test('a site as text; its API key is shown once', async () => {
      const created = await powgate.text(
        'site create --name second --plan pro --threshold=0.75 --block 2001:db8::/32',
        ...words('--origin https://a.example --origin https://*.b.example --origin https://a.example'),
        ...words('--fail-open challenge --weight webdriver=1 --weight noPlugins=.05'),
      )
      const siteKey = /site_\w+/.exec(created)![0]
      const apiKey = /API key +(sk_\S+)/.exec(created)![1]!
      assert.match(apiKey, API_KEY)
      assert.match(created, /not shown again/)
      assert.ok(created.startsWith(`The site was created in ${place}. `))
      const shown = await powgate.text('site show', siteKey)
      const listed = await powgate.text('site list')
      for (const value of [
        /origins +\[https:\/\/a\.example, https:\/\/\*\.b\.example\] \(default: any\)$/m,
        /threshold +0\.75 \(default: 0\.5\)$/m,
        /ipRules\.allow +any\n +ipRules\.block +\[2001:db8::\/32\] \(default: none\)$/m,
        /scoreWeights\.noPlugins +0\.05 \(default: 0\.1\)$/m,
      ]) {
        assert.match(created, value)
        assert.match(shown, value)
      }
      assert.ok(shown.includes(apiKey.slice(3, 11)))
      assert.doesNotMatch(shown + listed, /sk_|[0-9a-f]{64}/)
      const found = listed.split('\n').map(line => line.split(/ {2,}/)[1])
      assert.deepEqual(found, ['NAME', 'first', 'fifth', 'second', undefined])
    })

    test('an update says what it made; one that contradicts the site changes nothing', async () => {
      const { siteKey } = await powgate.json('site create --name third --plan pro --block 192.0.2.1')
      const { updatedAt, createdAt, store } = await powgate.json(`site update ${siteKey} --plan free`)
      assert.ok(updatedAt > createdAt && store === place)
      const text = await powgate.text(`site update ${siteKey} --name again`)
      assert.ok(text.startsWith(`The site was changed in ${place}.\n`))
      assert.match(text, /again.*192\.0\.2\.1\] \(not used on plan free\)/s)

      const stored = await powgate.json('site show', siteKey)
      const refuse = (flags: string) => powgate.problem(2, `site update ${siteKey} --name no ${flags}`)
      assert.match(await refuse('--min 23'), /^--min, --base, --max: .*got 23, 18, 28$/)
      assert.match(await refuse('--allow 10.0.0.1'), /^--allow: expected --plan pro/)
      assert.deepEqual(await powgate.json('site show', siteKey), stored, 'nothing half-applied')
    })

    test('API keys that expire', async () => {
      const { siteKey } = await powgate.json('site create --name sixth')
      const soon = await powgate.json('key create', siteKey, '--expires', '90m', '--name', ' backend ')
      assert.equal(soon.name, 'backend')
      assert.ok(Math.abs(soon.expiresAt - Date.now() - 90 * 60_000) < 60_000, String(soon.expiresAt))
      const later = await powgate.text(`key create ${siteKey} --expires 9998-12-31`)
      assert.match(later, /^ {2}expires +9998-12-31T00:00:00Z$/m)
      const list = async () => (await powgate.text('key list', siteKey)).trimEnd().split('\n').slice(1)
      const [first, second, third] = await list()
      assert.match(first!, / - +\S+Z +- +valid$/)
      assert.match(second!, / backend +\S+Z +- +expires soon: \S+Z$/)
      assert.match(third!, /Z +- +valid until 9998-12-31T00:00:00Z$/)

      const updated = await powgate.json('key update', soon.id, '--no-expiry', '--name', 'front end')
      const { createdAt } = updated
      assert.deepEqual(updated, {
        ...{ id: soon.id, siteKey, name: 'front end', state: 'valid', createdAt },
        ...{ expiresAt: null, revokedAt: null, lastUsedAt: null, store: place },
      })
      const ends = await powgate.text(`key update ${soon.id} --expires 9998-12-31T12:30+02:00`)
      assert.equal(ends, `In ${place} the API key ${soon.id} of ${siteKey} ends: 9998-12-31T10:30:00Z.\n`)
      const called = await powgate.text('key update', soon.id, '--name', 'desk')
      assert.match(called, / is called "desk" and ends: 9998-12-31T10:30:00Z\.\n$/)
      await powgate.text('key revoke', soon.id)
      assert.match(await powgate.problem(1, `key update ${soon.id} --no-expiry`), /is revoked already$/)
    })

    test('a site or key that does not exist is named, exit code 1', async () => {
      const sites = await powgate.json('site list')
      const keys = await powgate.json('key list')
      const ofSites = ['show', 'update --name x', 'raise --bits 0', 'disable', 'enable', 'export']
      for (const call of [...ofSites.map(call => `site ${call}`), 'key create', 'key list'])
        assert.equal(await powgate.problem(1, call, UNKNOWN_SITE), `there is no site ${UNKNOWN_SITE}`)
      for (const call of ['key revoke AAAAAAAA', 'key update AAAAAAAA --no-expiry'])
        assert.equal(await powgate.problem(1, call), 'there is no API key with the id AAAAAAAA')
      assert.deepEqual(await powgate.json('audit --site', UNKNOWN_SITE), [])
      assert.deepEqual(await powgate.json('site list'), sites)
      assert.deepEqual(await powgate.json('key list'), keys)
    })

    test('a raise is shown and in the audit log, in no export file, and ended by its command alone', async () => {
      const { siteKey } = await powgate.json('site create --name raised')
      const raised = await powgate.text(`site raise ${siteKey} --bits 3 --for 2h`)
      assert.ok(raised.startsWith(`The site is raised in ${place}.\n`))
      const { raise } = await powgate.json('site show', siteKey)
      assert.ok(raise.bits === 3 && Math.abs(raise.until - Date.now() - 7_200_000) < 60_000)
      const until = new Date(raise.until).toISOString()
      const line = new RegExp(`^ {2}raised +by 3 until ${until.slice(0, 19)}Z$`, 'm')
      assert.match(await powgate.text('site show', siteKey), line)

      const file = await powgate.text('site export', siteKey)
      assert.doesNotMatch(file, /"raise"/)
      const path = written(join(dir, 'raised.json'), file)
      assert.deepEqual((await powgate.json('apply --file', path)).changed, [])
      writeFileSync(path, file.replace('"threshold": 0.5', '"threshold": 0.6'))
      await powgate.text('apply --file', path)
      assert.deepEqual((await powgate.json(`site update ${siteKey} --base 19`)).raise, raise)

      const ended = await powgate.text(`site raise ${siteKey} --bits 0`)
      assert.match(ended, /^The site is not raised in /)
      assert.doesNotMatch(ended, line)
      const audit = await powgate.json('audit --site', siteKey)
      const changes = audit.flatMap(({ how, changes }: AuditEntry) => (how === 'site raise' ? changes : []))
      assert.deepEqual(changes, [
        { field: 'raise.bits', from: null, to: 3 },
        { field: 'raise.until', from: null, to: until },
        { field: 'raise.bits', from: 3, to: null },
        { field: 'raise.until', from: until, to: null },
      ])
    })
  })
}

describe('the settings of a service in a file, as a service manager gives them', () => {
  const none = join(dir, 'none')
  const calls = ['site create --name x', 'site list', 'site export', `key create ${UNKNOWN_SITE}`, 'audit']

  test('without settings a command says that there is no store, and creates none', async () => {
    for (const call of calls) {
      const line = await new Powgate({ POWGATE_DATA_DIR: none }).problem(1, call)
      const start = `POWGATE_DATA_DIR: ${none} does not exist, and only serve creates it. `
      assert.ok(line.startsWith(start), line)
    }
    assert.ok(!existsSync(none))
  })

  test('--config finds the store of the service', async () => {
    const store = join(dir, 'of the service')
    mkdirSync(store)
    const config = written(join(dir, "operator's powgate.conf"), `POWGATE_DATA_DIR=${store}\n`)
    const powgate = new Powgate({})
    const quoted = `'${dir}/operator'\\''s powgate.conf'`
    assert.ok((await powgate.text('site list --config', config)).includes(` --config ${quoted}; `))
    const created = await powgate.json('site create --name x --config', config)
    assert.equal(created.store, store)
    const [site] = await powgate.json('site list --config', config)
    assert.equal(site.siteKey, created.siteKey)
    assert.match(await powgate.problem(1, 'audit --config', none), /^POWGATE_CONFIG_FILE: cannot read /)
  })
})

test('commands at the same time without a service: each is the store when the one before has ended', async () => {
  const powgate = new Powgate({ POWGATE_DATA_DIR: temporaryDir('at-once') }, { isAlone: true })
  await Promise.all(['a', 'b', 'c', 'd'].map(name => powgate.text('site create --name', name)))
  assert.equal((await powgate.json('site list')).length, 4)
})

test('Redis that is not there or refuses a call, a data directory that is a file or cannot be made: one line', async () => {
  const redis = await RedisServer.start()
  await redis.ask('rpush', 'pg:{sites}:changes', 'no change') // a list where the store has a sorted set
  const file = written(join(dir, 'a-file'), '')
  const [nobody, nowhere] = [`redis://user:hunter2@127.0.0.1:${await freePort()}`, '/proc/powgate/data']
  const noDirectory = /^POWGATE_DATA_DIR: cannot use the directory /
  const nobodyThere =
    /^REDIS_URL: cannot use Redis at 127\.0\.0\.1:\d+: nothing listens there \(127\.0\.0\.1:\d+\)$/
  const serving = { REDIS_URL: redis.url, POWGATE_SECRETS: 'x'.repeat(32), PORT: '0' }
  for (const [call, env, line] of [
    ['site create --name x', { REDIS_URL: nobody }, nobodyThere],
    ['site list', { REDIS_URL: redis.url }, /^the store failed: WRONGTYPE/],
    ['serve', serving, /^REDIS_URL: cannot use Redis at \S+: WRONGTYPE/],
    ['site list', { POWGATE_DATA_DIR: file }, noDirectory],
    ['serve', { POWGATE_DATA_DIR: nowhere, PORT: '0' }, noDirectory],
  ] as const) {
    const said = await new Powgate(env, { isAlone: call === 'serve' }).problem(1, call)
    assert.match(said, line)
    assert.doesNotMatch(said, /hunter2/)
  }
})

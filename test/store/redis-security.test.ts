/** Redis users with minimal permissions, passwords and TLS, on one server, behind Sentinels, and on a Cluster; and causes of outages. */

import assert from 'node:assert/strict'
import { createServer } from 'node:net'
import { before, describe, test } from 'node:test'
import { loadConfig } from '../../src/config/config.ts'
import { StoreClient } from '../../src/store/client/store-client.ts'
import { causeOf } from '../../src/store/client/trouble.ts'
import { reachSites } from '../../src/store/open.ts'
import type { StoreListener } from '../../src/store/store.ts'
import { OperatorError } from '../../src/words/errors.ts'
import { storeErrorText } from '../../src/words/system-error.ts'
import { eventually } from '../harness/eventually.ts'
import { listenAnywhere } from '../harness/ports.ts'
import { makeUser, PASSWORD, RedisServer, USER } from '../harness/redis.ts'
import { RedisCluster } from '../harness/redis-cluster.ts'
import { RedisSentinels } from '../harness/redis-sentinel.ts'
import { Certificates } from '../harness/redis-tls.ts'
import { TEST_SECRET } from '../harness/service.ts'
import {
  challengeOn,
  freshKey,
  meteringOf,
  nonceOn,
  redeemable,
  redemptionOn,
  SITE,
  spendable,
  tokenOn,
} from './harness.ts'

type Settings = Record<string, string>

function storeFor(settings: Settings, openTimeoutMs = 60_000, listener: StoreListener = {}): StoreClient {
  const config = loadConfig({ POWGATE_SECRETS: TEST_SECRET, ...settings })
  const { redis, redisPrefix: keyPrefix, redisShards: clusterShards } = config
  const times = { deadlineMs: 5000, openTimeoutMs }
  return new StoreClient({ target: redis!, keyPrefix, clusterShards, ...times, ...listener })
}

async function withStore(settings: Settings, use: (store: StoreClient) => unknown, listener?: StoreListener) {
  const store = storeFor(settings, undefined, listener)
  try {
    await store.open()
    await use(store)
  } finally {
    await store.close()
  }
}

/** The first error about this: on a busy machine, errors before may say only that there was no answer yet. */
async function openingError(settings: Settings, about: RegExp) {
  const store = storeFor(settings, 0) // `open` tries once
  const error = await eventually(60_000, String(about), async () => {
    const [opened] = await Promise.allSettled([store.open()])
    assert(opened.status === 'rejected', 'it was opened')
    return about.test(opened.reason.message) && (opened.reason as Error)
  })
  const trouble = store.trouble()
  await store.close()
  return { error, trouble }
}

/** Makes every kind of call that the service makes; one without the rights for it would fail. */
async function exercise(store: StoreClient): Promise<void> {
  for (let count = 0; count < 20; count++) {
    const addressKey = freshKey()
    const metering = meteringOf(addressKey)
    assert.equal((await challengeOn(store, { addressKey, metering })).status, 'admitted')
    // A nonce has a key of its own above 64 verifications a minute.
    for (const addressLimit of [30, 100]) {
      const spend = spendable(store, addressKey)
      assert.equal(await nonceOn(store, { addressKey, addressLimit, metering, spend }), 'spent')
    }
    const redeem = redeemable(store)
    const redeemed = (claim: string) =>
      tokenOn(store, { callerKey: addressKey, redeem: { ...redeem, claim } })
    assert.equal(await redeemed('once'), 'redeemed')
    assert.equal(await redeemed('once'), 'redeemed', 'a retry')
    assert.equal(await redeemed('another'), 'used')
  }
  // One that the caller's own limit refuses, and one that is taken back because the key's does.
  const callerKey = freshKey()
  await redemptionOn(store, { callerKey, callerLimit: 1 })
  assert.equal((await redemptionOn(store, { callerKey, callerLimit: 1 })).status, 'limited')
  const apiKey = { id: 'tightkey', limit: 1, siteKey: SITE }
  await redemptionOn(store, { callerKey: freshKey(), apiKey })
  assert.equal((await redemptionOn(store, { callerKey: freshKey(), apiKey })).status, 'limited')

  assert.equal(await store.sites.readUsualRate(SITE), undefined)
  const { revision } = await store.sites.changesSince(undefined)
  assert.deepEqual((await store.sites.changesSince(revision - 1)).siteKeys, [], 'no test here makes a site')
  await store.sites.listSites()
  assert.equal(await store.sites.readSite('site_none'), undefined)
}

const sni = new Certificates({ names: 'DNS:redis.internal' })
const mutual = new Certificates({ names: 'IP:127.0.0.1,DNS:localhost', clientsMustShow: true })

const CREDENTIALS = { POWGATE_REDIS_USER: USER, POWGATE_REDIS_PASSWORD: PASSWORD }
const ADMIN = 'of the tests alone'

const server = await RedisServer.start([], { tls: mutual, password: ADMIN })
await makeUser([server])

describe('one server over TLS, a restricted user', () => {
  const settings = () => ({ REDIS_URL: server.url, ...mutual.settings, ...CREDENTIALS })
  /** These lack the certificate of the authority. */
  const noAuthority = () => ({ REDIS_URL: server.url, ...CREDENTIALS })

  test('every call goes through', () => withStore(settings(), exercise))

  test('the settings of Redis, passwords among them, may not be read', async () => {
    for (const command of ['config get requirepass', 'config get masterauth', 'acl list', 'debug sleep 0'])
      assert.match(String(await server.ask('acl', 'dryrun', USER, ...command.split(' '))), /no permissions/)
    assert.equal(await server.ask('acl', 'dryrun', USER, 'get', 'pg:x'), 'OK')
  })

  test('by name, with the credentials in the URL', async () => {
    const credentials = `${USER}:${encodeURIComponent(PASSWORD)}`
    const REDIS_URL = `rediss://${credentials}@localhost:${server.port}`
    await withStore({ REDIS_URL, ...mutual.settings }, exercise)
  })

  test('what is wrong is said in one line without the password', async () => {
    const wrong = `not ${PASSWORD}`
    const rights = ['on', `>${PASSWORD}`, '~*', '+@all', '-@dangerous', '-@admin']
    assert.equal(await server.ask('acl', 'setuser', 'careful', ...rights), 'OK')
    const few = ['reset', 'on', `>${PASSWORD}`, '~*', '+@connection', '+info'] // may run no script
    assert.equal(await server.ask('acl', 'setuser', 'idle', ...few), 'OK')
    const [usual, bare] = [settings(), { REDIS_URL: server.url, ...mutual.settings }]
    const wrongPassword = { ...usual, POWGATE_REDIS_PASSWORD: wrong }
    const wrongName = { ...usual, POWGATE_REDIS_TLS_NAME: 'elsewhere' }
    const noCert = { POWGATE_REDIS_TLS_CERT: '', POWGATE_REDIS_TLS_KEY: '' }
    const rows: [variables: string, about: RegExp, settings: Settings][] = [
      ['POWGATE_REDIS_USER, POWGATE_REDIS_PASSWORD', /WRONGPASS/, wrongPassword],
      ['POWGATE_REDIS_PASSWORD', /NOAUTH/, bare],
      ['POWGATE_REDIS_PREFIX', /NOPERM/, { ...usual, POWGATE_REDIS_PREFIX: 'other' }],
      ['POWGATE_REDIS_USER', /NOPERM .*'info'/, { ...usual, POWGATE_REDIS_USER: 'careful' }],
      ['POWGATE_REDIS_USER', /NOPERM/, { ...usual, POWGATE_REDIS_USER: 'idle' }],
      ['POWGATE_REDIS_TLS_CA', /self-signed|self signed|unable to get|issuer/, noAuthority()],
      ['POWGATE_REDIS_TLS_CERT', /certificate required|alert/, { ...usual, ...noCert }],
      ['POWGATE_REDIS_TLS_NAME', /does not match|altnames/, wrongName],
    ]
    for (const [variables, about, bad] of rows) {
      const { error } = await openingError(bad, about)
      assert.ok(error instanceof OperatorError)
      assert.match(error.message, /^[\w, ]+: cannot use Redis at 127\.0\.0\.1:\d+ over TLS: [^\n]+$/)
      assert.equal(error.message.split(':')[0], variables)
      assert.ok(!error.message.includes(PASSWORD) && !error.message.includes(wrong), error.message)
    }
  })

  /** A socket that is closed in its TLS handshake emits two errors. ioredis listens for one, so the other would end the process. */
  test('connections that are closed during their handshake end nothing else', async () => {
    const openAndClose = async (openTimeoutMs: number) => {
      const store = storeFor(noAuthority(), openTimeoutMs)
      await assert.rejects(store.open(), OperatorError)
      await store.close()
    }
    for (let round = 0; round < 10; round++)
      await Promise.all(Array.from({ length: 10 }, (_, index) => openAndClose(200 + index * 20)))
  })

  test('a password that is replaced on the server refuses new connections, and nothing hangs', async () => {
    const told: string[] = []
    const onStillAway = (cause: string) => told.push(cause)
    const use = async (store: StoreClient) => {
      await makeUser([server], 'another password')
      await server.ask('client', 'kill', 'user', USER)
      await eventually(60_000, 'refusals', async () => {
        return (await redemptionOn(store)).status === 'unavailable' && !store.isReady()
      })
      await eventually(60_000, 'the cause is told', () => told.some(line => /WRONGPASS/.test(line)))
      assert.ok(!told.join().includes(PASSWORD), told.join())
      assert.equal(store.trouble()!.cause, 'auth')
      const startedAt = performance.now()
      assert.equal((await redemptionOn(store)).status, 'unavailable')
      assert.ok(performance.now() - startedAt < 4000, 'not only at the deadline')
      await makeUser([server])
      await eventually(60_000, 'the password works again', () => store.isReady())
      assert.equal((await redemptionOn(store)).status, 'admitted')
    }
    await withStore(settings(), use, { onStillAway })
  })
})

test('a certificate for a name, a server known by address: POWGATE_REDIS_TLS_NAME says which', async () => {
  const server = await RedisServer.start([], { tls: sni })
  const settings = { REDIS_URL: server.url, ...sni.settings }
  await withStore({ ...settings, POWGATE_REDIS_TLS_NAME: 'redis.internal' }, exercise)
  await openingError(settings, /does not match/)
})

for (const [who, scheme, options, about, cause] of [
  ['the client', 'rediss', { password: ADMIN }, /speaks no TLS/, 'tls'],
  ['Redis', 'redis', { tls: sni }, /does the port want rediss/, 'other'],
] as const)
  test(`TLS of ${who} alone: the error and the cause say so`, async () => {
    const { port } = await RedisServer.start([], options)
    const { trouble } = await openingError({ REDIS_URL: `${scheme}://127.0.0.1:${port}` }, about)
    assert.equal(trouble!.cause, cause)
  })

describe('Sentinels over TLS, passwords for both', () => {
  let sentinels: RedisSentinels
  before(async () => {
    sentinels = await RedisSentinels.start({
      tls: mutual,
      password: ADMIN,
      sentinelPassword: 'sentinels too',
      // A busy machine that starves the primary for a moment must not make it fail over.
      downAfterMs: 20_000,
    })
    await makeUser(sentinels.servers)
  })
  const settings = () => ({ REDIS_URL: sentinels.url, ...mutual.settings, ...CREDENTIALS })

  test('every call goes through, and nothing is printed of a dead Sentinel', async t => {
    const printed = t.mock.method(console, 'error')
    const REDIS_URL = sentinels.url.replace('/main', ',127.0.0.1:1/main')
    await withStore({ ...settings(), REDIS_URL, POWGATE_SENTINEL_PASSWORD: 'sentinels too' }, exercise)
    assert.deepEqual(printed.mock.calls, [])
  })

  test('a wrong password of the Sentinels is named', async () => {
    const about = /POWGATE_SENTINEL_PASSWORD: .*(WRONGPASS|NOAUTH|invalid password)/i
    await openingError({ ...settings(), POWGATE_SENTINEL_PASSWORD: 'no' }, about)
  })
})

test('a Cluster over TLS, a restricted user: every call goes through, on nodes that announce addresses, also while slots move', async t => {
  const cluster = await RedisCluster.start({ tls: sni, password: ADMIN })
  t.after(() => cluster.stop())
  await makeUser(cluster.servers)
  const settings = { ...sni.settings, ...CREDENTIALS, POWGATE_REDIS_TLS_NAME: 'redis.internal' }
  // A client of a single server uses the slot of `{0}`, 13907. The node of slot 0 does not have it, and answers MOVED.
  const REDIS_URL = (await cluster.primaryOf(0)).url
  await openingError({ REDIS_URL, ...settings }, /^REDIS_URL: .*: it is a node of a Cluster, so write redis/)
  const usual = { REDIS_URL: cluster.url, ...settings }
  for (const [wrong, about] of [
    [{ POWGATE_REDIS_TLS_CA: '' }, /^POWGATE_REDIS_TLS_CA: /],
    [{ POWGATE_REDIS_TLS_NAME: 'elsewhere' }, /^POWGATE_REDIS_TLS_NAME: .*127\.0\.0\.1:\d+\)$/],
  ] as const)
    await openingError({ ...usual, ...wrong }, about)
  await openingError({ REDIS_URL: 'redis+cluster://no.invalid' }, /there is no host|the name server does not/)
  const sites = await reachSites(loadConfig({ POWGATE_SECRETS: TEST_SECRET, ...usual }))
  assert.equal(await sites.readUsualRate(SITE), undefined, 'also before nodes are connected')
  await sites.close()
  await withStore(usual, async store => {
    await exercise(store)
    const [first, second] = await cluster.primaries()
    await first!.cli(
      ...['--cluster', 'reshard', `127.0.0.1:${first!.port}`, '--cluster-yes', '--cluster-slots', '1200'],
      ...['--cluster-from', String(await first!.ask('cluster', 'myid'))],
      ...['--cluster-to', String(await second!.ask('cluster', 'myid'))],
    )
    await eventually(60_000, 'all shards are found', () => store.health.describe().startsWith('16 of 16'))
    await exercise(store)
  })
})

test('an encoded password of any characters works, and any password of a user with nopass', async () => {
  const password = 'a,#/?%:@ä+ 1'
  const server = await RedisServer.start()
  await server.ask('acl', 'setuser', 'closed', 'on', `>${password}`, '~*', '+@all')
  await server.ask('acl', 'setuser', 'open', 'on', 'nopass', '~*', '+@all')
  for (const credentials of [`closed:${encodeURIComponent(password)}`, 'open:any'])
    await withStore({ REDIS_URL: server.url.replace('//', `//${credentials}@`) }, exercise)
})

test('the cause of an outage, by what ioredis and Redis say', () => {
  const rows: [cause: string, why: string][] = [
    ['auth', 'WRONGPASS invalid username-password pair or user is disabled.'],
    ['auth', 'NOAUTH Authentication required.'],
    [
      'auth',
      "ERR The user executing the script can't run this command or subcommand script: 5f, on @user_script:9.",
    ],
    ['name', 'getaddrinfo ENOTFOUND redis.internal'],
    ['refused', 'connect ECONNREFUSED 127.0.0.1:6379'],
    ['timeout', 'no answer within 150 ms'],
    ['timeout', 'connect ETIMEDOUT'],
    ['tls', 'self-signed certificate in certificate chain'],
    ['tls', "Hostname/IP does not match certificate's altnames: IP: 127.0.0.1 is not in the cert's list: "],
    ['read-only', "READONLY You can't write against a read only replica."],
    ['loading', 'LOADING Redis is loading the dataset in memory'],
    ['memory', "OOM command not allowed when used memory > 'maxmemory'."],
    ['clients', 'ERR max number of clients reached'],
    ['disk', 'MISCONF Errors writing to the AOF file: No space left on device'],
    ['other', 'the connection was lost'],
  ]
  for (const [cause, why] of rows) assert.equal(causeOf(why), cause, why)
  for (const [why, words] of [
    ['connect ECONNREFUSED 10.0.0.5:6379', 'nothing listens there (10.0.0.5:6379)'],
    ['read ECONNRESET before any answer', 'the connection was closed before any answer'],
    [
      'failed to connect to sentinel a:1 because Connection is closed.',
      'sentinel a:1: there is no connection',
    ],
    ['WRONGPASS invalid username', 'WRONGPASS invalid username'],
    ['Unknown RESP type 72 "H". Please report this.', "it does not speak Redis' protocol"],
  ] as const)
    assert.equal(storeErrorText(why), words)
})

test('a server that answers every command alike is told from one that does not answer', async t => {
  const answer = '$11\r\nloading:0\r\n\r\n'
  const server = createServer(socket =>
    socket.on('data', data => socket.write(answer.repeat(String(data).split(/\*\d+\r\n/).length - 1))),
  )
  const port = await listenAnywhere(server)
  t.after(() => server.close())
  await openingError({ REDIS_URL: `redis://127.0.0.1:${port}` }, /: a reply of unexpected length$/)
})

test('a Redis that loads its file is told from one that does not answer', async () => {
  const server = await RedisServer.start(['--save', '3600 1'])
  await server.ask('eval', "for i = 1, 20000 do redis.call('SET', 'key' .. i, i) end", 0)
  await server.ask('save')
  await server.kill()
  // Microseconds for each key; the server answers in between.
  await server.boot(['--key-load-delay', '3000', '--loading-process-events-interval-bytes', '1024'])
  const store = storeFor({ REDIS_URL: server.url })
  await eventually(60_000, 'the cause', () => store.trouble()?.cause === 'loading')
  await store.close()
})

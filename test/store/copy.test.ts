/** `store copy`: what is in a store and what is under way comes over whole, to any other store and back, and holds at one of them. */

import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { parseRedisUrl } from '../../src/config/redis.ts'
import { authorInService, createSite, deletion, revokeApiKey, updateSite } from '../../src/sites/sites.ts'
import { type CopyEnd, copyStore } from '../../src/store/copy.ts'
import { EmbeddedEnd } from '../../src/store/embedded/copy.ts'
import { discardStaleState } from '../../src/store/embedded/environment.ts'
import { EmbeddedStore } from '../../src/store/embedded/store.ts'
import { openRedisEnd } from '../../src/store/redis/copy.ts'
import type { Store } from '../../src/store/store.ts'
import { RedisServer } from '../harness/redis.ts'
import { RedisCluster } from '../harness/redis-cluster.ts'
import {
  challengeOn,
  freshNonce,
  meteringOf,
  nonceOn,
  openRedis,
  redeemable,
  redemptionOn,
  SITE,
  solutionOn,
  tempDir,
  tokenOn,
} from './harness.ts'

/** A store that is opened as a service or as an end of a copy, one after the other. */
interface Place {
  serve(): Promise<Store>
  end(isTarget: boolean): Promise<CopyEnd>
}

function embedded(dataDir: string): Place {
  return {
    serve: async () => {
      discardStaleState(dataDir)
      return new EmbeddedStore({ dataDir, bytesMax: 1e9, sweeps: false })
    },
    end: async isTarget => new EmbeddedEnd(dataDir, isTarget),
  }
}

const SHARDS = 16

const redis = (url: string): Place => ({
  serve: () => openRedis(url),
  end: () => openRedisEnd(parseRedisUrl(url)!, 'test', SHARDS),
})

async function copied(from: Place, to: Place, replaces = false) {
  const ends = [await from.end(false), await to.end(true)] as const
  try {
    return await copyStore(...ends, replaces, () => {})
  } finally {
    for (const end of ends) await end.close()
  }
}

async function served<Result>(place: Place, action: (store: Store) => Promise<Result>): Promise<Result> {
  const store = await place.serve()
  try {
    return await action(store)
  } finally {
    await store.close()
  }
}

const [ADDRESS, OTHER] = ['0a000001', `0a000001nsite_000000000000000000000m`]
const METERING = meteringOf(ADDRESS)
const LIMITS = { addressLimit: 10, siteLimit: 10 }

/** Sites with a history, and visits in every state; and what must hold of them wherever they are served next. */
async function filled(store: Store) {
  const { site, apiKey } = await createSite(store.sites, { name: 'shop' })
  await createSite(store.sites, { name: 'blog' })
  const { site: gone } = await createSite(store.sites, { name: 'gone' })
  await store.sites.commit(
    deletion(gone, await store.sites.listApiKeys(), Date.now()),
    authorInService('test'),
  )
  await updateSite(store.sites, site.siteKey, { threshold: 0.7 })
  await revokeApiKey(store.sites, apiKey.slice(3, 11))
  await store.sites.noteUses(new Map([[apiKey.slice(3, 11), 1_700_000_000_000]]))
  const epoch = store.requests.epochOf(SITE)!
  const now = Date.now()
  const nonceOf = (key: string) => {
    return { nonce: freshNonce(now), storeEpoch: store.requests.epochOf(key)!, expiresAtMs: now + 200_000 }
  }
  const token = () => ({ redeem: { ...redeemable(store), claim: 'c' } })
  const [spent, apart, open] = [nonceOf(ADDRESS), nonceOf(OTHER), nonceOf('0a000003')]
  const [redeemed, held] = [token(), token()]
  for (const spend of [spent, nonceOf(ADDRESS), nonceOf(ADDRESS)]) // the third time it returns
    assert.equal(await nonceOn(store, { addressKey: ADDRESS, spend, metering: METERING }), 'spent')
  assert.equal(await nonceOn(store, { addressKey: OTHER, addressLimit: 100, spend: apart }), 'spent')
  assert.equal(await tokenOn(store, redeemed), 'redeemed')
  for (let count = 0; count < 10; count++) await challengeOn(store, { addressKey: ADDRESS, ...LIMITS })
  for (let count = 0; count < 3; count++) await redemptionOn(store, { callerKey: ADDRESS, callerLimit: 3 })
  const usual = await store.sites.readUsualRate(SITE)
  return { epoch, spent, apart, open, redeemed, held, apiKeyId: apiKey.slice(3, 11), usual: usual! }
}

type Filled = Awaited<ReturnType<typeof filled>>

async function holds(
  store: Store,
  { epoch, spent, apart, redeemed, apiKeyId, usual }: Filled,
): Promise<void> {
  assert.equal(store.requests.epochOf(SITE), epoch)
  assert.equal(await nonceOn(store, { addressKey: ADDRESS, spend: spent }), 'used')
  assert.equal(await nonceOn(store, { addressKey: OTHER, addressLimit: 100, spend: apart }), 'used')
  assert.equal(await tokenOn(store, { redeem: { ...redeemed.redeem, claim: 'other' } }), 'used')
  assert.equal(await tokenOn(store, redeemed), 'redeemed', 'the same call again has the same answer')
  assert.equal((await challengeOn(store, { addressKey: ADDRESS, ...LIMITS })).status, 'limited')
  const limited = await redemptionOn(store, { callerKey: ADDRESS, callerLimit: 3 })
  assert.equal(limited.status, 'limited')
  assert.ok(limited.status === 'limited' && limited.retryAfterMs > 0 && limited.retryAfterMs < 60_000)
  assert.deepEqual(
    (await store.sites.readAudit({ limit: 100 })).map(({ action }) => action),
    [
      ...['site', 'key', 'site', 'key', 'site', 'key'].map(what => `${what}-created`),
      ...['site-deleted', 'key-deleted', 'site-changed', 'key-revoked'],
    ],
  )
  assert.deepEqual([...(await store.sites.readUses([apiKeyId])).values()], [1_700_000_000_000])
  const found = (await store.sites.readUsualRate(SITE))!
  assert.ok(Math.abs(found / usual - 1) < 0.01, `${found}, ${usual}`)
  const network = await solutionOn(store, { addressKey: '0a000002', metering: METERING })
  assert.ok(network.status === 'admitted' && network.meters!.networks.length > 0)
}

test('a copy from the embedded store to Redis and back has all records, limits, used nonces and meters, and new requests work', async t => {
  const server = await RedisServer.start()
  t.after(() => server.stop())
  const [here, there, back] = [embedded(tempDir(t)), redis(server.url), embedded(join(tempDir(t), 'new'))]
  const known = await served(here, filled)
  const recordsOf = async ({ sites }: Store) =>
    [await sites.listSites(), await sites.listApiKeys()].map(list =>
      list.map(one => JSON.stringify(one)).sort(),
    )
  const before = await served(here, recordsOf)
  for (const [from, to] of [
    [here, there],
    [there, back],
  ] as const) {
    const report = await copied(from, to)
    assert.deepEqual([report.sites, report.apiKeys, report.auditEntries], [2, 2, 10])
    assert.ok(report.underWay! > 5, String(report.underWay))
    await served(to, async store => {
      await holds(store, known)
      assert.deepEqual(await recordsOf(store), before)
    })
    // The source draws a new epoch: it redeems nothing of before, and what was copied is not copied again.
    await served(from, async store => {
      assert.equal(await tokenOn(store, known.held), 'forgotten')
      assert.notEqual(store.requests.epochOf(SITE), known.epoch)
    })
  }
  await served(back, async store => {
    assert.equal(await nonceOn(store, { addressKey: '0a000003', spend: known.open }), 'spent')
    assert.equal(await tokenOn(store, known.held), 'redeemed')
    await createSite(store.sites, { name: 'third' })
    assert.equal((await store.sites.readAudit({ limit: 100 })).length, 12)
  })
})

test('a copy is refused while a service runs, and where the target has other records; repeated, it takes nothing twice', async t => {
  const server = await RedisServer.start()
  t.after(() => server.stop())
  const [here, there] = [embedded(tempDir(t)), redis(server.url)]
  const known = await served(here, filled)
  await served(there, store => createSite(store.sites, { name: 'other' }))
  const lacks = /has records that .* lacks, of site_\w+, \w{8}: --replace throws them away$/
  await assert.rejects(copied(here, there), lacks)
  await served(there, async store => {
    await store.sites.noteHost('host', { ...ABOUT, id: 'host', name: 'a-host:8080' })
    await assert.rejects(copied(here, there, true), /in use by a-host:8080: stop the service first/)
    await store.sites.noteHost('host', null)
  })
  assert.equal((await copied(here, there, true)).sites, 2)
  // As if it had been cut off, or called twice.
  const again = await copied(here, there)
  assert.deepEqual([again.sites, again.underWay], [2, undefined])
  await served(there, store => holds(store, known))
})

const ABOUT = { version: '1', startedAt: 0, workers: 1, shared: {}, signs: '', verifies: [] }

test('a Cluster with as many shards takes all of another one; to another number of shards only the sites go', async t => {
  const clusters = await Promise.all([RedisCluster.start(), RedisCluster.start()])
  t.after(() => Promise.all(clusters.map(cluster => cluster.stop())))
  const [one, two] = clusters.map(cluster => redis(cluster.url)) as [Place, Place]
  const known = await served(one, filled)
  const report = await copied(one, two)
  assert.ok(report.underWay! > 5)
  await served(two, store => holds(store, known))
  const to = embedded(tempDir(t))
  const { underWay, why, sites } = await copied(two, to)
  assert.deepEqual([underWay, why, sites], [undefined, '16 shards do not fit into 1', 2])
  await served(to, async store => {
    assert.equal((await store.sites.listSites()).length, 2)
    assert.equal(await tokenOn(store, known.held), 'forgotten')
  })
})

/** The whole service under load while its Redis fails over, behind Sentinels and as a Cluster, and while slots move. */

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { describe, type TestContext, test } from 'node:test'
import { fnv1a } from '../../src/domain/hash.ts'
import { evenlySpreadTags, slotOf } from '../../src/store/redis/shard-tags.ts'
import { eventually } from '../harness/eventually.ts'
import type { RedisServer } from '../harness/redis.ts'
import { RedisCluster } from '../harness/redis-cluster.ts'
import { RedisSentinels } from '../harness/redis-sentinel.ts'
import { TestService, type TestSite, UNLIMITED_REDEMPTIONS } from '../harness/service.ts'
import { type Disturbance, judge } from './judge.ts'
import { Load, pause, WELL_MS } from './load.ts'

const SITES = 4
const DEADLINE_MS = 1000
const DOWN_AFTER_MS = 1000
const SHARDS = 16
const STEADY_MS = 4000
/** A worker looks at every shard once a second, and later on a busy machine: so long it may not know. */
const LOOK_MS = 2000

class Stage {
  readonly service: TestService
  readonly load: Load
  readonly sites: readonly TestSite[]
  readonly #disturbances: Disturbance[] = []
  readonly #workers: string

  private constructor(service: TestService, sites: readonly TestSite[]) {
    this.service = service
    this.sites = sites
    this.load = new Load(service, sites)
    this.#workers = this.#workerPids()
  }

  static async set(url: string): Promise<Stage> {
    const service = await TestService.start('embedded', {
      REDIS_URL: url,
      POWGATE_REDIS_SHARDS: String(SHARDS),
      // A machine that does other things besides does not always keep 150 ms.
      POWGATE_STORE_DEADLINE_MS: String(DEADLINE_MS),
      ...UNLIMITED_REDEMPTIONS,
    })
    const sites: TestSite[] = []
    for (let count = 0; count < SITES; count++)
      sites.push(await service.createSite({ difficulty: { base: 16, min: 16, max: 16 } }))
    const stage = new Stage(service, sites)
    stage.load.start()
    await stage.load.untilWell(performance.now())
    return stage
  }

  /** Does something to Redis, waits until the service is well again, and some more. */
  async disturb(name: string, act: () => Promise<void>): Promise<void> {
    const fromMs = performance.now()
    await act()
    const wellMs = await this.load.untilWell(performance.now())
    this.#disturbances.push({ name, fromMs, wellMs, knownMs: wellMs + LOOK_MS })
    await pause(STEADY_MS)
    const refused = this.load.samples.filter(({ startedMs, status }) => startedMs >= wellMs && status === 503)
    assert.equal(refused.length, 0, `after ${name} it did not stay well: ${this.load.describe(wellMs)}`)
  }

  async end(t: TestContext): Promise<void> {
    await this.load.stop()
    assert.equal(this.#workerPids(), this.#workers, 'no worker has gone')
    for (const line of judge(this.load, this.#disturbances)) t.diagnostic(line)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.load.stop()
    await this.service.stop()
  }

  #workerPids(): string {
    return execFileSync('ps', ['-o', 'pid=', '--ppid', String(this.service.pid)]).toString()
  }
}

/** Where redemptions for a site live. */
function slotOfSite({ siteKey }: TestSite): number {
  return slotOf(`{${evenlySpreadTags(SHARDS)[fnv1a(siteKey) % SHARDS]}}`)
}

function untilReplica(server: RedisServer): Promise<boolean> {
  return eventually(WELL_MS, 'the old primary is a replica', async () => {
    return String(await server.ask('info', 'replication').catch(() => '')).includes('role:slave')
  })
}

describe('failover under load', { concurrency: true }, () => {
  test('Sentinels: a planned failover, then the primary is frozen, then one is killed', async t => {
    const sentinels = await RedisSentinels.start({ downAfterMs: DOWN_AFTER_MS })
    try {
      await using stage = await Stage.set(sentinels.url)
      const first = await sentinels.primary()
      await stage.disturb('SENTINEL FAILOVER', async () => {
        await sentinels.failover()
        await eventually(WELL_MS, 'another primary', async () => (await sentinels.primary()) !== first)
        await untilReplica(first)
      })
      await sentinels.untilWhole()
      const frozen = await sentinels.primary()
      await stage.disturb('frozen primary behind Sentinels, thawed after the failover', async () => {
        frozen.freeze()
        await eventually(WELL_MS, 'another primary', async () => (await sentinels.primary()) !== frozen)
        await stage.load.untilWell(performance.now())
        frozen.thaw()
        await untilReplica(frozen)
      })
      await sentinels.untilWhole()
      const second = await sentinels.primary()
      let killedMs = 0
      await stage.disturb('killed primary behind Sentinels', async () => {
        await second.kill()
        killedMs = performance.now()
        await eventually(WELL_MS, 'another primary', async () => (await sentinels.primary()) !== second)
      })
      // Nobody can have taken over before the Sentinels took it for dead.
      const deadMs = killedMs + DOWN_AFTER_MS
      for (const { endpoint, status, startedMs, tookMs } of stage.load.samples)
        if (endpoint === 'verify-token' && startedMs > killedMs && startedMs + tookMs < deadMs)
          assert.ok(status === 503 || status === 400, `${status} without a store`)
      await stage.end(t)
    } finally {
      await sentinels.stop()
    }
  })

  test('Cluster: a planned failover, then a primary is killed', async t => {
    const cluster = await RedisCluster.start({ replicas: 1, nodeTimeoutMs: 1500 })
    try {
      await using stage = await Stage.set(cluster.url)
      const first = await cluster.primaryOf(slotOfSite(stage.sites[0]!))
      const replica = await cluster.replicaOf(first)
      await stage.disturb('CLUSTER FAILOVER', async () => {
        await replica.ask('cluster', 'failover')
        await untilReplica(first)
      })
      const second = await cluster.primaryOf(slotOfSite(stage.sites[1]!))
      const heir = await cluster.replicaOf(second)
      await stage.disturb('killed primary of a Cluster', async () => {
        await second.kill()
        await eventually(WELL_MS, 'it took over', async () => (await cluster.primaries()).includes(heir))
      })
      await stage.end(t)
    } finally {
      await cluster.stop()
    }
  })
})

test('Cluster: all slots that hold keys of powgate move, key by key, then 1,000 more by redis-cli', async t => {
  const cluster = await RedisCluster.start({ replicas: 1, nodeTimeoutMs: 1500 })
  try {
    await using stage = await Stage.set(cluster.url)
    const primaries = await cluster.primaries()
    const tags = [...evenlySpreadTags(SHARDS), 'sites', 'load']
    await stage.disturb(`migration of ${tags.length} slots`, async () => {
      for (const tag of tags) {
        const slot = slotOf(`{${tag}}`)
        const from = await cluster.primaryOf(slot)
        const to = primaries[(primaries.indexOf(from) + 1) % primaries.length]!
        await cluster.migrate(slot, to, () => pause(10))
      }
    })
    const [from, to] = primaries
    await stage.disturb('redis-cli --cluster reshard', async () => {
      await from!.cli(
        ...['--cluster', 'reshard', `127.0.0.1:${from!.port}`, '--cluster-yes', '--cluster-slots', '1000'],
        ...['--cluster-from', String(await from!.ask('cluster', 'myid'))],
        ...['--cluster-to', String(await to!.ask('cluster', 'myid'))],
      )
    })
    await stage.end(t)
  } finally {
    await cluster.stop()
  }
})

/**
 * What of the contract asks the store, but for what takes a minute, on Redis behind Sentinels and on a Cluster, each with
 * replicas, side by side; and on Valkey where there is one.
 */

import { after, before, describe } from 'node:test'
import { CONTRACT } from '../contract/sections.ts'
import { Subject } from '../contract/support.ts'
import { ENGINES, type Engine } from '../harness/redis.ts'
import { RedisCluster } from '../harness/redis-cluster.ts'
import { RedisSentinels } from '../harness/redis-sentinel.ts'
import { TestService } from '../harness/service.ts'

interface Topology {
  readonly url: string
  stop(): Promise<void>
}

/** A busy machine that starves a server for a moment must not make it fail over: that is another test's business. */
const PATIENT_MS = 20_000

const TOPOLOGIES: Readonly<Record<string, (engine: Engine) => Promise<Topology>>> = {
  'behind Sentinels': engine => RedisSentinels.start({ engine, downAfterMs: PATIENT_MS }),
  'as a Cluster': engine => RedisCluster.start({ engine, replicas: 1, nodeTimeoutMs: PATIENT_MS }),
}

/** Sections about bodies, paths and headers, which each worker answers from what it has read. */
const WITHOUT_STORE = ['fields of a solution', 'bodies that are no good', 'paths, methods and sizes', 'CORS']

/** One after the other the engines, which have the cores to themselves then. */
for (const engine of ENGINES) {
  describe(`contract, ${engine}`, { concurrency: true }, () => {
    for (const [name, start] of Object.entries(TOPOLOGIES)) {
      describe(name, { concurrency: false }, () => {
        let topology: Topology
        let service: TestService
        before(async () => {
          topology = await start(engine)
          service = await TestService.start('embedded', {
            REDIS_URL: topology.url,
            // Whether a busy machine keeps the store's usual deadline is not what these tests are about.
            POWGATE_STORE_DEADLINE_MS: '5000',
          })
        })
        after(async () => {
          await service?.stop()
          await topology?.stop()
        })
        for (const [about, section] of Object.entries(CONTRACT)) {
          if (WITHOUT_STORE.includes(about)) continue
          describe(about, () => {
            const subject = new Subject()
            before(() => subject.prepare(service))
            section(subject)
          })
        }
      })
    }
  })
}

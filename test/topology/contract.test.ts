/**
 * What of the contract asks the store, but for what takes a minute, on Redis behind Sentinels and on a Cluster, each with
 * replicas, side by side; and on Valkey where there is one.
 */

import { CONTRACT } from '../contract/sections.ts'
import { onHosts } from '../contract/support.ts'
import { ENGINES } from '../harness/redis.ts'
import { RedisCluster } from '../harness/redis-cluster.ts'
import { RedisSentinels } from '../harness/redis-sentinel.ts'

/** A busy machine that starves a server for a moment must not make it fail over: that is another test's business. */
const PATIENT_MS = 20_000

/** Sections about bodies, paths and headers, which each worker answers from what it has read. */
const WITHOUT_STORE = ['fields of a solution', 'bodies that are no good', 'paths, methods and sizes', 'CORS']
const sections = Object.fromEntries(
  Object.entries(CONTRACT).filter(([about]) => !WITHOUT_STORE.includes(about)),
)

/** One after the other the engines, which have the cores to themselves then. */
for (const engine of ENGINES) {
  const sentinels = () => RedisSentinels.start({ engine, downAfterMs: PATIENT_MS })
  const cluster = () => RedisCluster.start({ engine, replicas: 1, nodeTimeoutMs: PATIENT_MS })
  onHosts([
    { kind: 'embedded', sections, topology: [`${engine} behind Sentinels`, sentinels] },
    { kind: 'embedded', sections, topology: [`${engine} as a Cluster`, cluster] },
  ])
}

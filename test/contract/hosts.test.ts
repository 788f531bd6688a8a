/**
 * The contract (docs/reference/contract.md) through real proxies, with clients at many addresses, and on Redis behind Sentinels and on a
 * Cluster, each with replicas. The tests that take a minute are left out, because no proxy or replica changes how long a minute is.
 */

import { RedisCluster } from '../harness/redis-cluster.ts'
import { RedisSentinels } from '../harness/redis-sentinel.ts'
import { BY_ADDRESS, CONTRACT, only, without } from './sections.ts'
import { onHosts } from './support.ts'

// Before a release, release/proxies.test.ts asks through the other proxies. proxy/ checks what each passes on, with every change.
onHosts([
  { store: 'redis', front: 'nginx', sections: CONTRACT },
  { store: 'embedded', front: 'haproxy-v2', sections: CONTRACT },
])

/** Sections about bodies, paths and headers, which each worker answers from what it has read. */
const WITHOUT_STORE = ['fields of a solution', 'wrong bodies', 'paths and methods', 'CORS'] as const
/** Behind Sentinels there is one primary, which answers as in contract.test.ts. These sections show that every kind of request finds it. */
const EVERY_KIND = [...BY_ADDRESS, 'sites and origins', 'POST /verify-token', 'limits for backends'] as const

/** A server that a busy machine starves for a moment must not fail over; another test is about failovers. */
const PATIENT_MS = 20_000

const sentinels = () => RedisSentinels.start({ engine: 'redis', downAfterMs: PATIENT_MS })
const cluster = () => RedisCluster.start({ engine: 'valkey', replicas: 1, nodeTimeoutMs: PATIENT_MS })

onHosts([
  { sections: only(...EVERY_KIND), store: ['Redis behind Sentinels', sentinels] },
  { sections: without(...WITHOUT_STORE), store: ['Valkey as a Cluster', cluster] },
])

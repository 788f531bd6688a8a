/** Ways in which one Redis server takes over from another. */

import { setTimeout as sleep } from 'node:timers/promises'
import { slotOf } from '../../../src/store/client/connection.ts'
import { eventually } from '../../harness/eventually.ts'
import { signalIfThere } from '../../harness/processes.ts'
import type { Random } from '../../harness/random.ts'
import type { RedisServer } from '../../harness/redis.ts'
import { RedisCluster } from '../../harness/redis-cluster.ts'
import { RedisSentinels } from '../../harness/redis-sentinel.ts'
import type { RedemptionLoad, Topology } from './redemption-load.ts'

/** Causes one failover. Resolves when all servers are in order again. */
type Failover = (load: RedemptionLoad, random: Random) => Promise<void>

export interface Failovers extends Topology {
  readonly kinds: Readonly<Record<string, Failover>>
  /** Ports of the servers that take writes, as a text to compare. */
  primaryPorts(): Promise<string>
  readonly servers: readonly RedisServer[]
  stop(): Promise<void>
}

const NEXT_MS = 60_000 // for each step that is awaited
const ZOMBIE_MS_MAX = 2000 // for which a thawed primary goes on as one, although another has its place
/** After this time a failover has failed: Sentinels give up after their failover-timeout, 3 s, a Cluster after 5 s. */
const GIVEN_UP_MS = 8000

/** How often a failover is asked for: requests are refused, or given up, shortly after the failover before. */
const REQUESTS_MAX = 10
/** How often two servers that follow each other are set right. */
const SETTLES_MAX = 3

/** `promise.then(yes, no)` tells whether it was fulfilled. */
const yes = () => true
const no = () => false

/** Stops hosts while something happens, which they miss. @param pids a primary before its workers, or it would kill them as hung */
async function whileStopped(pids: readonly number[], act: () => Promise<void>): Promise<void> {
  const signal = (name: NodeJS.Signals) => {
    for (const pid of pids) signalIfThere(pid, name)
  }
  signal('SIGSTOP')
  try {
    await act()
  } finally {
    for (const pid of pids.toReversed()) signalIfThere(pid, 'SIGCONT') // one may have died, and the others must go on
  }
}

/** Stops the last host while a primary is frozen. @param frozen a failover that calls its argument at the thaw */
async function withHostStopped(
  load: RedemptionLoad,
  frozen: (onThaw: () => void) => Promise<void>,
): Promise<void> {
  let goOn = () => {}
  const thawed = new Promise<void>(resolve => (goOn = resolve))
  await Promise.all([whileStopped(load.lastHostPids(), () => thawed), frozen(goOn).finally(goOn)])
}

/** Freezes a primary until another server has its place, and up to half a second longer. */
async function freezeUntil(
  isReplaced: () => Promise<unknown>,
  primary: RedisServer,
  random: Random,
  onThaw: () => void,
): Promise<void> {
  primary.freeze()
  try {
    await isReplaced()
    await sleep(random.below(500))
  } finally {
    primary.thaw()
    onThaw()
  }
}

/** Repeats a request that resolves with its answer; rejects with the last one if no failover came of it. */
async function untilOver(request: () => Promise<unknown>, isOver: () => Promise<boolean>): Promise<void> {
  let answer: unknown
  for (let count = 0; count < REQUESTS_MAX; count++) {
    answer = await request()
    if (await isOver()) return
  }
  throw new Error(`no failover after ${REQUESTS_MAX} requests: ${answer}`)
}

export async function sentinelFailovers(): Promise<Failovers> {
  const sentinels = await RedisSentinels.start({ downAfterMs: 600 })
  const another = async (than: RedisServer, ms = NEXT_MS) =>
    eventually(ms, 'another primary', async () => {
      const primary = await sentinels.primary()
      return primary === than ? undefined : primary
    })
  /** Sentinels refuse the request until the failover before has ended, and may give up one that they began. */
  const failOverOnRequest = async () => {
    const primary = await sentinels.primary()
    const isBegun = () => sentinels.failover().then(yes, no)
    const request = () => eventually(NEXT_MS, 'a failover is begun', isBegun)
    await untilOver(request, () => another(primary, GIVEN_UP_MS).then(yes, no))
  }
  /** Makes a thawed primary a replica, after it has gone on as a primary for a while. */
  const demote = async (server: RedisServer, random: Random) => {
    await sleep(random.below(ZOMBIE_MS_MAX))
    // Without this, the Sentinels would do it after about ten seconds.
    const primary = await sentinels.primary()
    await server.ask('replicaof', '127.0.0.1', primary.port).catch(() => {})
  }
  const frozen = async (random: Random, onThaw: () => void) => {
    const primary = await sentinels.primary()
    await freezeUntil(() => another(primary), primary, random, onThaw)
    await demote(primary, random)
    await sentinels.untilWhole()
  }
  return {
    url: sentinels.url,
    isCluster: false,
    primaryFor: () => sentinels.primary(),
    primaryPorts: async () => String((await sentinels.primary()).port),
    servers: sentinels.servers,
    stop: () => sentinels.stop(),
    kinds: {
      'SENTINEL FAILOVER': async () => {
        await failOverOnRequest()
        await sentinels.untilWhole()
      },
      'primary killed': async (_, random) => {
        const primary = await sentinels.primary()
        await primary.kill()
        const next = await another(primary)
        await sleep(random.below(500))
        await primary.boot(['--replicaof', '127.0.0.1', String(next.port)])
        await sentinels.untilWhole()
      },
      'primary frozen, then thawed': (_, random) => frozen(random, () => {}),
      'primary frozen, and a host with it': (load, random) =>
        withHostStopped(load, goOn => frozen(random, goOn)),
      'SENTINEL FAILOVER while a host is stopped': async load => {
        await whileStopped(load.lastHostPids(), failOverOnRequest)
        await sentinels.untilWhole()
      },
    },
  }
}

export async function clusterFailovers(): Promise<Failovers> {
  const cluster = await RedisCluster.start({ replicas: 1, nodeTimeoutMs: 1500 })
  const primaryFor = (tag: string) => cluster.primaryOf(slotOf(`{${tag}}`))
  /** Waits until one of these servers is a connected replica. */
  const follows = (servers: readonly RedisServer[], ms: number) =>
    eventually(ms, `${servers.map(({ port }) => port)}: one follows`, async () => {
      for (const server of servers) if ((await rolesOf(server)).includes('master_link_status:up')) return true
      return false
    })
  /**
   * After two failovers at once, each server may follow the other: then one is told to take over. Or one stays a primary
   * without slots, which no node makes a replica again: then it is told to follow the other.
   */
  const settles = async (one: RedisServer, other: RedisServer) => {
    for (let count = 0; count < SETTLES_MAX; count++) {
      if (await follows([one, other], GIVEN_UP_MS).then(yes, no)) return
      const [isOne, isOther] = await Promise.all([one, other].map(each => cluster.ownsSlots(each).catch(no)))
      if (isOne && !isOther) await cluster.makeReplica(other, one).catch(() => {})
      else if (isOther && !isOne) await cluster.makeReplica(one, other).catch(() => {})
      else await one.ask('cluster', 'failover', 'takeover').catch(() => {})
    }
    await follows([one, other], NEXT_MS).catch(async error => {
      throw new Error(`${error.message}: ${await Promise.all([one, other].map(rolesOf))}`)
    })
  }
  // The primary and the replica of a random site's shard. Right after a failover, some nodes do not know yet which follows which.
  const pair = (load: RedemptionLoad, random: Random) => {
    const tag = load.tagOf(random.below(load.sites.length))
    const both = async () => {
      const primary = await primaryFor(tag)
      return { primary, heir: await cluster.replicaOf(primary) }
    }
    return eventually(NEXT_MS, 'a primary and its replica', () => both().catch(() => undefined))
  }
  const isPrimary = async (server: RedisServer) => (await rolesOf(server)).includes('role:master')
  const takesOver = (heir: RedisServer, ms = NEXT_MS) =>
    eventually(ms, 'the heir takes over', () => isPrimary(heir))
  const onRequest =
    (...how: string[]): Failover =>
    async (load, random) => {
      const { primary, heir } = await pair(load, random)
      // The other nodes vote for no second failover of a primary within two node timeouts: the asking node gets no answer.
      const request = () => heir.ask('cluster', 'failover', ...how).catch((error: Error) => error)
      await untilOver(request, () => takesOver(heir, GIVEN_UP_MS).then(yes, no))
      await settles(primary, heir)
    }
  const frozen = async (load: RedemptionLoad, random: Random, onThaw: () => void) => {
    const { primary, heir } = await pair(load, random)
    await freezeUntil(() => takesOver(heir), primary, random, onThaw)
    await settles(primary, heir)
  }
  return {
    url: cluster.url,
    isCluster: true,
    primaryFor,
    primaryPorts: async () => String((await cluster.primaries()).map(({ port }) => port)),
    servers: cluster.servers,
    stop: () => cluster.stop(),
    kinds: {
      'CLUSTER FAILOVER': onRequest(),
      'primary killed': async (load, random) => {
        const { primary, heir } = await pair(load, random)
        await primary.kill()
        await takesOver(heir)
        await sleep(random.below(500))
        await primary.boot()
        await settles(primary, heir)
      },
      'CLUSTER FAILOVER FORCE': onRequest('force'),
      'CLUSTER FAILOVER TAKEOVER': onRequest('takeover'),
      'primary frozen, then thawed': (load, random) => frozen(load, random, () => {}),
      'primary frozen, and a host with it': (load, random) =>
        withHostStopped(load, goOn => frozen(load, random, goOn)),
    },
  }
}

/** The server's INFO about its role, and about its link to its primary. */
const rolesOf = async (server: RedisServer) => String(await server.ask('info', 'replication').catch(() => ''))

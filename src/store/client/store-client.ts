/**
 * The client of both stores: of Redis, and of the store process (../embedded/), which answers the same calls. A worker has one. On a
 * Cluster it has a shard for each part, otherwise one shard.
 */

import { describeTarget, type RedisTarget } from '../../config/redis.ts'
import { socketSites } from '../embedded/socket-sites.ts'
import { RedisRecords, SITES_SLOT } from '../redis/records.ts'
import type { RequestStore, SiteStore, StoreListener, StoreStatus, StoreTrouble } from '../store.ts'
import { BridgedRequests, type BridgeOptions } from './bridge.ts'
import { askAt, type Connection, connect, nameOf, type Server, shardTags } from './connection.ts'
import { ShardHealth } from './health.ts'
import { adviceOn, clockAhead, nodeAdvice, statusOf, untilUsable, versionOf } from './inspection.ts'
import { ShardedRequests } from './requests.ts'
import { Shard } from './shard.ts'
import { troubleOf } from './trouble.ts'

export interface StoreClientOptions extends StoreListener {
  readonly target: RedisTarget
  readonly keyPrefix: string
  readonly deadlineMs: number
  readonly clusterShards: number
  /** `open` gives up after this time; the default is OPEN_MS of inspection.ts. */
  readonly openTimeoutMs?: number
  /** Without this, /challenge and /verify never fail open. */
  readonly bridge?: BridgeOptions | undefined
  /** Tests set it. */
  readonly clock?: () => number
}

export class StoreClient {
  /** A text for the log, without credentials. */
  readonly description: string
  readonly requests: RequestStore & { stop(): void }
  readonly sites: SiteStore
  readonly health: ShardHealth
  readonly #options: StoreClientOptions
  readonly #connection: Connection
  /** A second connection, to the store process alone, for writes that wait for its disk (embedded/socket-sites.ts). */
  readonly #aside: Connection | undefined
  readonly #shards: readonly Shard[]

  /** Connects, and asks the store again and again until `close`; `open` waits for the first answer. */
  constructor(options: StoreClientOptions) {
    const { target, keyPrefix, clusterShards, deadlineMs, clock } = options
    const connection = connect(target, deadlineMs)
    this.#options = options
    this.#connection = connection
    this.description = describeTarget(target)
    this.#aside = target.kind === 'socket' ? connect(target, deadlineMs) : undefined
    this.sites = sitesOver(connection, options, this.#aside)
    const tags = shardTags(connection, clusterShards)
    this.#shards = tags.map(tag => {
      const shard: Shard = new Shard(connection, {
        keyPrefix: target.kind === 'socket' ? '' : `${keyPrefix}:{${tag}}:`, // the store process has no other user, and no slots
        deadlineMs,
        testClock: () => String(clock?.() ?? ''),
        onChange: () => this.health.changed(), // not before the first probe, so `health` is there
        onForgotten: () => this.health.forgot(shard),
        onCall: options.onCall,
      })
      return shard
    })
    const now = clock ?? Date.now
    this.requests =
      options.bridge === undefined
        ? new ShardedRequests(this.#shards, now)
        : new BridgedRequests(this.#shards, now, options.bridge)
    this.health = new ShardHealth(this.#shards, options, connection.causeAt)
    for (const shard of this.#shards) shard.probe()
    connection.onReady(() => {
      for (const shard of this.#shards) shard.connectionReady()
    })
    connection.onLost(server => {
      for (const shard of this.#shards) shard.connectionLost(server)
    })
  }

  /** Resolves once the store answers. @throws OperatorError */
  async open(): Promise<void> {
    await untilUsable(this.#connection, this.#options, async () => {
      if (!this.health.isWhole()) throw new Error(this.health.cause())
      await this.#aside?.ask('ping')
    })
  }

  /** Asks the servers in use. A line names those that it is about, unless it is about all. */
  async advice(): Promise<string[]> {
    const { target, deadlineMs } = this.#options
    const servers = this.#servers()
    const serversOf = new Map<string, string[]>()
    for (const server of servers)
      for (const line of await adviceOn(askAt(server, deadlineMs), target.kind))
        serversOf.set(line, [...(serversOf.get(line) ?? []), nameOf(server)])
    return [...serversOf].map(([line, names]) =>
      names.length === servers.length ? line : `${names.join(', ')}: ${line}`,
    )
  }

  #servers(): Server[] {
    return [...new Set(this.#shards.map(({ slot }) => this.#serverOf(slot)))]
  }

  #serverOf(slot: number): Server {
    const server = this.#connection.serverOf(slot)
    if (server !== undefined) return server
    throw new Error(this.health.isWhole() ? 'the server is being looked for' : this.health.cause())
  }

  /** Asks every node, replicas too, over a connection of its own each. */
  nodeAdvice(): Promise<string[]> {
    return nodeAdvice(this.#connection.ask, this.#options.target, this.#options.deadlineMs)
  }

  version(): Promise<string | undefined> {
    return versionOf(this.#connection.ask)
  }

  /** Drops entries of the audit log of that age by the earlier clock, this host's or the store's: one far ahead must not drop more. */
  async dropAudit(ageMs: number): Promise<void> {
    // On a Cluster the log's times are those of its own node.
    const ask = askAt(this.#serverOf(SITES_SLOT), this.#options.deadlineMs)
    const hostAheadMs = (await clockAhead(ask)) * 1000
    await this.sites.dropAudit(Date.now() - Math.max(0, hostAheadMs) - ageMs)
  }

  async close(): Promise<void> {
    this.health.stop()
    this.requests.stop()
    this.#connection.close()
    this.#aside?.close()
  }

  isReady(): boolean {
    return this.health.isReady()
  }

  /** Defined even if one shard alone is down, because it has all redemptions of some sites. */
  trouble(): StoreTrouble | undefined {
    if (this.health.isWhole()) return undefined
    return troubleOf(this.#options.target, this.health.cause())
  }

  /** Sums up all servers: the largest clock difference, the first policy that evicts, all evicted keys. Rejects if one does not answer. */
  async status(): Promise<StoreStatus> {
    const { deadlineMs } = this.#options
    const statuses = await Promise.all(this.#servers().map(server => statusOf(askAt(server, deadlineMs))))
    const clocks = statuses.map(({ clockAheadSeconds }) => clockAheadSeconds)
    return {
      clockAheadSeconds: clocks.reduce((one, other) => (Math.abs(other) > Math.abs(one) ? other : one)),
      evictsBy: statuses.find(({ evictsBy }) => evictsBy !== undefined)?.evictsBy,
      evictedKeys: statuses.reduce((sum, { evictedKeys }) => sum + evictedKeys, 0),
    }
  }
}

export function sitesOver(
  connection: Connection,
  { target, keyPrefix, clusterShards }: Pick<StoreClientOptions, 'target' | 'keyPrefix' | 'clusterShards'>,
  aside = connection,
): SiteStore {
  if (target.kind === 'socket') return socketSites(connection.ask, aside.ask)
  return new RedisRecords(connection, keyPrefix, clusterShards)
}

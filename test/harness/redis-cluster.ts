/** A real Redis Cluster of three primaries on loopback, each with a replica if requested. */

import { eventually, PATIENCE_MS } from './eventually.ts'
import { freePort } from './ports.ts'
import { RedisServer, type ServerOptions } from './redis.ts'

interface ClusterOptions extends ServerOptions {
  readonly replicas?: 0 | 1
  readonly nodeTimeoutMs?: number
  readonly settings?: Readonly<Record<string, string>>
}

const PRIMARIES = 3

export class RedisCluster {
  readonly servers: readonly RedisServer[]
  /** All nodes as seeds; redis:// or rediss://. */
  readonly url: string

  private constructor(servers: readonly RedisServer[]) {
    this.servers = servers
    this.url = servers.map(({ url }) => url).join(',')
  }

  static async start(options: ClusterOptions = {}): Promise<RedisCluster> {
    const { replicas = 0, nodeTimeoutMs = 5000, settings = {}, ...server } = options
    const args = ['--cluster-enabled', 'yes', '--cluster-node-timeout', String(nodeTimeoutMs)]
    // A replica that was disconnected for long may still take over, and gets the data without delay.
    args.push('--cluster-replica-validity-factor', '0', '--repl-diskless-sync-delay', '0')
    for (const [name, value] of Object.entries(settings)) args.push(`--${name}`, value)
    const count = PRIMARIES * (1 + replicas)
    const start = async () => RedisServer.start([...args, '--cluster-port', String(await freePort())], server)
    const servers = await Promise.all(Array.from({ length: count }, start))
    const nodes = servers.map(({ port }) => `127.0.0.1:${port}`)
    const cluster = new RedisCluster(servers)
    try {
      const how = ['--cluster-replicas', String(replicas), '--cluster-yes']
      await servers[0]!.cli('--cluster', 'create', ...nodes, ...how)
      for (const each of servers) await cluster.#untilFormed(each)
      return cluster
    } catch (error) {
      await cluster.stop()
      throw error
    }
  }

  async #untilFormed(server: RedisServer): Promise<void> {
    await eventually(PATIENCE_MS, 'the Redis Cluster has formed', async () => {
      const info = String(await server.ask('cluster', 'info'))
      if (!info.includes('cluster_state:ok')) return false
      if (!info.includes(`cluster_known_nodes:${this.servers.length}`)) return false
      const nodes = String(await server.ask('cluster', 'nodes'))
      if ((nodes.match(/\bslave\b/g) ?? []).length !== this.servers.length - PRIMARIES) return false
      const replication = String(await server.ask('info', 'replication'))
      return replication.includes('role:master') || replication.includes('master_link_status:up')
    })
  }

  async #nodes(witness = this.servers.find(server => server.isRunning)!) {
    const table = String(await witness.ask('cluster', 'nodes')).trim()
    return table.split('\n').map(line => {
      const [id, address, flags, primaryId, , , , , ...slots] = line.split(' ')
      const port = Number(/:(\d+)@/.exec(address!)![1])
      const isPrimary = flags!.includes('master') && !flags!.includes('fail')
      return { id: id!, port, isPrimary, primaryId: primaryId!, slots }
    })
  }

  async primaryOf(slot: number): Promise<RedisServer> {
    const hasSlot = (range: string) => {
      const [first, last = first] = range.split('-').map(Number)
      return slot >= first! && slot <= last!
    }
    const owner = (await this.#nodes()).find(({ isPrimary, slots }) => isPrimary && slots.some(hasSlot))
    if (owner === undefined) throw new Error(`nobody serves slot ${slot}`)
    return this.#serverAt(owner.port)
  }

  async primaries(): Promise<RedisServer[]> {
    const nodes = (await this.#nodes()).filter(({ isPrimary, slots }) => isPrimary && slots.length > 0)
    return nodes.map(({ port }) => this.#serverAt(port))
  }

  async replicaOf(primary: RedisServer): Promise<RedisServer> {
    const nodes = await this.#nodes()
    const { id } = nodes.find(({ port }) => port === primary.port)!
    return this.#serverAt(nodes.find(({ primaryId }) => primaryId === id)!.port)
  }

  /** Whether a server has slots by its own account. */
  async ownsSlots(server: RedisServer): Promise<boolean> {
    const { isPrimary, slots } = (await this.#nodes(server)).find(({ port }) => port === server.port)!
    return isPrimary && slots.length > 0
  }

  async makeReplica(server: RedisServer, primary: RedisServer): Promise<void> {
    // A replica refuses this, and its new primary empties it.
    await server.ask('flushall').catch(() => {})
    await server.ask('cluster', 'replicate', String(await primary.ask('cluster', 'myid')))
  }

  /** Migrates a slot key by key, as redis-cli does; awaits `between` after every few keys. */
  async migrate(slot: number, to: RedisServer, between: () => Promise<void>): Promise<void> {
    const from = await this.primaryOf(slot)
    if (from === to) return
    const [fromId, toId] = await Promise.all([from, to].map(server => server.ask('cluster', 'myid')))
    await to.ask('cluster', 'setslot', slot, 'importing', String(fromId))
    await from.ask('cluster', 'setslot', slot, 'migrating', String(toId))
    // Counts first, because our ioredis takes an empty list in reply to any CLUSTER command for an error (store/client/ioredis.ts).
    while (Number(await from.ask('cluster', 'countkeysinslot', slot)) > 0) {
      const keys = (await from.ask('cluster', 'getkeysinslot', slot, 10)) as string[]
      await from.ask('migrate', '127.0.0.1', to.port, '', 0, 5000, 'REPLACE', 'KEYS', ...keys)
      await between()
    }
    for (const server of [to, from, ...(await this.primaries())])
      await server.ask('cluster', 'setslot', slot, 'node', String(toId))
  }

  #serverAt(port: number): RedisServer {
    return this.servers.find(server => server.port === port)!
  }

  async stop(): Promise<void> {
    await Promise.all(this.servers.map(server => server.stop()))
  }
}

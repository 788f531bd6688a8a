/** A real Redis Cluster of three primaries on loopback. */

import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { RedisServer } from './redis.ts'

const run = promisify(execFile)

export class RedisCluster {
  readonly servers: readonly RedisServer[]
  readonly url: string

  private constructor(servers: readonly RedisServer[]) {
    this.servers = servers
    this.url = servers.map(({ url }) => url).join(',')
  }

  static async start(): Promise<RedisCluster> {
    const options = ['--cluster-enabled', 'yes', '--cluster-node-timeout', '2000']
    const servers = await Promise.all([1, 2, 3].map(() => RedisServer.start(options)))
    const nodes = servers.map(({ port }) => `127.0.0.1:${port}`)
    await run('redis-cli', ['--cluster', 'create', ...nodes, '--cluster-yes'])
    const cluster = new RedisCluster(servers)
    for (const server of servers) await cluster.#untilFormed(server)
    return cluster
  }

  async #untilFormed(server: RedisServer): Promise<void> {
    for (let attempt = 0; attempt < 200; attempt++) {
      const { stdout } = await run('redis-cli', ['-p', String(server.port), 'cluster', 'info'])
      if (stdout.includes('cluster_state:ok') && stdout.includes('cluster_known_nodes:3')) return
      await new Promise(resolve => setTimeout(resolve, 50))
    }
    throw new Error('the Redis Cluster did not form')
  }

  async stop(): Promise<void> {
    await Promise.all(this.servers.map(server => server.stop()))
  }
}

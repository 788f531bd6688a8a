/** Real Sentinels on loopback: one primary, two replicas, and three Sentinels that watch them under the name `main`. */

import { type ChildProcess, spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { eventually, PATIENCE_MS } from './eventually.ts'
import { freePort, untilAccepting } from './ports.ts'
import { endProcess, leftovers } from './processes.ts'
import { askOnce, clientOptions, RedisServer, type ServerOptions } from './redis.ts'
import { temporaryDir } from './temporary.ts'

interface SentinelOptions extends ServerOptions {
  readonly sentinelPassword?: string
  readonly downAfterMs?: number
}

export class RedisSentinels {
  readonly servers: readonly RedisServer[]
  readonly ports: readonly number[]
  /** redis+sentinel:// or rediss+sentinel://, without credentials. */
  readonly url: string
  readonly #options: SentinelOptions
  readonly #dir = temporaryDir('sentinel')
  #processes: ChildProcess[] = []

  private constructor(servers: readonly RedisServer[], ports: readonly number[], options: SentinelOptions) {
    this.servers = servers
    this.ports = ports
    this.#options = options
    const scheme = options.tls === undefined ? 'redis' : 'rediss'
    this.url = `${scheme}+sentinel://${ports.map(port => `127.0.0.1:${port}`).join(',')}/main`
  }

  static async start(options: SentinelOptions = {}): Promise<RedisSentinels> {
    // Replicas copy at once, instead of after five seconds, and hear from their primary each second.
    const args = ['--repl-diskless-sync-delay', '0', '--repl-ping-replica-period', '1']
    const primary = await RedisServer.start(args, options)
    const following = [...args, '--replicaof', '127.0.0.1', String(primary.port)]
    const replicas = await Promise.all([1, 2].map(() => RedisServer.start(following, options)))
    const ports = await Promise.all([1, 2, 3].map(freePort))
    const sentinels = new RedisSentinels([primary, ...replicas], ports, options)
    leftovers.add(sentinels)
    for (const port of ports) sentinels.#launch(port, primary.port)
    try {
      await Promise.all(ports.map(port => untilAccepting(port)))
      await sentinels.untilWhole()
      return sentinels
    } catch (error) {
      await sentinels.stop()
      throw error
    }
  }

  #launch(port: number, primaryPort: number): void {
    const { engine = 'redis', tls, password, sentinelPassword, downAfterMs = 1000 } = this.#options
    const tlsLines = Object.entries(tls?.serverSettings ?? {}).map(setting => setting.join(' '))
    const lines = [
      ...(tls === undefined ? [`port ${port}`] : ['port 0', `tls-port ${port}`, ...tlsLines]),
      'bind 127.0.0.1',
      `dir ${this.#dir}`,
      `sentinel monitor main 127.0.0.1 ${primaryPort} 2`, // so many Sentinels must find it down before one starts a failover
      ...(password === undefined ? [] : [`sentinel auth-pass main "${password}"`]),
      ...(sentinelPassword === undefined ? [] : [`requirepass "${sentinelPassword}"`]),
      `sentinel down-after-milliseconds main ${downAfterMs}`,
      'sentinel failover-timeout main 3000',
      'sentinel parallel-syncs main 2',
    ]
    const file = join(this.#dir, `sentinel-${port}.conf`)
    writeFileSync(file, `${lines.join('\n')}\n`)
    this.#processes.push(spawn(`${engine}-server`, [file, '--sentinel'], { stdio: 'ignore' }))
  }

  ask(...args: string[]): Promise<unknown> {
    const { tls, sentinelPassword: password } = this.#options
    return askOnce(clientOptions(this.ports[0]!, { tls, password }), 'sentinel', ...args)
  }

  /** Waits until the first Sentinel knows both others, and sees all other running servers follow the primary. */
  async untilWhole(): Promise<void> {
    const running = this.servers.filter(server => server.isRunning).length
    const field = (record: readonly string[], name: string) => record[record.indexOf(name) + 1]
    await eventually(PATIENCE_MS, 'the Sentinels know each other and the replicas', async () => {
      const primary = (await this.ask('master', 'main')) as string[]
      if (field(primary, 'flags') !== 'master' || field(primary, 'num-other-sentinels') !== '2') return false
      const replicas = (await this.ask('replicas', 'main')) as string[][]
      const following = replicas.filter(
        each => field(each, 'flags') === 'slave' && field(each, 'master-link-status') === 'ok',
      )
      return following.length >= running - 1
    })
  }

  async primary(): Promise<RedisServer> {
    const [, port] = (await this.ask('get-master-addr-by-name', 'main')) as string[]
    return this.servers.find(server => server.port === Number(port))!
  }

  /** Starts a failover, which has come about once `primary` is another. */
  async failover(): Promise<void> {
    await this.ask('failover', 'main')
  }

  async stop(): Promise<void> {
    leftovers.delete(this)
    const ending = this.#processes.map(child => endProcess(child, 'SIGKILL'))
    this.#processes = []
    await Promise.all([...ending, ...this.servers.map(server => server.stop())])
  }
}

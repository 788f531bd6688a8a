/** A real redis-server (or valkey-server) on loopback, which ends with the test file; a user with the rights of docs/reference/redis.md. */

import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { promisify } from 'node:util'
import { Redis } from 'ioredis'
import { noteSecret } from './canaries.ts'
import { freePort, untilAccepting } from './ports.ts'
import { endProcess, hasEnded, leftovers } from './processes.ts'
import type { Certificates } from './redis-tls.ts'
import { temporaryDir } from './temporary.ts'

export type Engine = 'redis' | 'valkey'

/** The engines that the suite runs on: see test/run.ts. */
export const ENGINES = (process.env.TEST_ENGINES ?? 'redis,valkey').split(',') as readonly Engine[]

export interface ServerOptions {
  readonly engine?: Engine
  readonly tls?: Certificates | undefined
  /** Password of the user `default`, who has all rights: the tests themselves log in with it. */
  readonly password?: string | undefined
}

export class RedisServer {
  readonly port: number
  readonly url: string
  readonly options: ServerOptions
  readonly #extraArgs: readonly string[]
  readonly #dir = temporaryDir('redis')
  #process: ChildProcess | undefined

  private constructor(port: number, extraArgs: readonly string[], options: ServerOptions) {
    this.port = port
    this.options = options
    this.url = `${options.tls === undefined ? 'redis' : 'rediss'}://127.0.0.1:${port}`
    this.#extraArgs = extraArgs
  }

  static async start(extraArgs: readonly string[] = [], options: ServerOptions = {}): Promise<RedisServer> {
    const server = new RedisServer(await freePort(), extraArgs, options)
    leftovers.add(server)
    await server.boot()
    return server
  }

  /** Starts the server on its port, also after `kill`. It saves nothing by itself, so it starts empty, or with what a test saved. */
  async boot(extraArgs: readonly string[] = []): Promise<void> {
    const { engine = 'redis', password } = this.options
    const args = [
      ...['--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', '--dir', this.#dir],
      ...this.#portArgs(),
      ...(password === undefined ? [] : ['--requirepass', password, '--masterauth', password]),
      ...this.#extraArgs,
      ...extraArgs,
    ]
    const passwordAt = args.lastIndexOf('--requirepass') + 1 // of several, Redis takes the last
    if (passwordAt > 0) noteSecret('redis password', args[passwordAt]!)
    const child = spawn(`${engine}-server`, args, { stdio: 'ignore' })
    this.#process = child
    await untilAccepting(this.port, () => hasEnded(child))
  }

  #portArgs(): string[] {
    const { tls } = this.options
    if (tls === undefined) return ['--port', String(this.port)]
    const settings = Object.entries({ ...tls.serverSettings, 'tls-cluster': 'yes' })
    const settingArgs = settings.flatMap(([name, value]) => [`--${name}`, value])
    return ['--port', '0', '--tls-port', String(this.port), ...settingArgs]
  }

  async kill(): Promise<void> {
    const child = this.#process
    this.#process = undefined
    if (child !== undefined) await endProcess(child, 'SIGKILL')
  }

  freeze(): void {
    this.#process?.kill('SIGSTOP')
  }

  thaw(): void {
    this.#process?.kill('SIGCONT')
  }

  get pid(): number {
    return this.#process!.pid!
  }

  get isRunning(): boolean {
    return this.#process !== undefined
  }

  get clientOptions() {
    return clientOptions(this.port, this.options)
  }

  ask(command: string, ...args: (string | number)[]): Promise<unknown> {
    return askOnce(this.clientOptions, command, ...args)
  }

  async cli(...args: string[]): Promise<string> {
    const { engine = 'redis', tls, password } = this.options
    const how = [
      ...(tls?.cliArgs ?? []),
      ...(password === undefined ? [] : ['--no-auth-warning', '-a', password]),
    ]
    const { stdout } = await promisify(execFile)(`${engine}-cli`, [...how, '-p', String(this.port), ...args])
    return stdout
  }

  async stop(): Promise<void> {
    leftovers.delete(this)
    await this.kill()
  }
}

/** Options for the tests' own ioredis clients, which reconnect as usual. */
export const clientOptions = (port: number, { tls, password }: ServerOptions) => ({
  host: '127.0.0.1',
  port,
  ...(password === undefined ? {} : { password }),
  ...(tls === undefined ? {} : { tls: tls.clientOptions }),
})

/** Sends one command to a server or a Sentinel, on a connection of its own. */
export async function askOnce(
  options: ReturnType<typeof clientOptions>,
  command: string,
  ...args: (string | number)[]
) {
  const client = new Redis({ ...options, retryStrategy: () => null })
  client.on('error', () => {})
  try {
    return await client.call(command, ...args)
  } finally {
    client.disconnect()
  }
}

export const USER = 'powgate'
export const PASSWORD = 'a password, with: / @ and %'

const PAGE = new URL('../../docs/reference/redis.md', import.meta.url)

/** The user's rights: `ACL SETUSER powgate on >... ~pg:* ...` of the page, without name and password. */
function rules(): string[] {
  const line = /^ACL SETUSER powgate (.*)$/m.exec(readFileSync(PAGE, 'utf8'))
  if (line === null) throw new Error(`${PAGE.pathname} has no ACL SETUSER`)
  return line[1]!.split(' ').filter(rule => !/^(reset|on|>.*)$/.test(rule))
}

/** Creates the user on every server: nodes of a Cluster, and replicas, each have their own users. */
export async function makeUser(servers: readonly RedisServer[], password = PASSWORD): Promise<void> {
  for (const server of servers)
    await server.ask('acl', 'setuser', USER, 'reset', 'on', `>${password}`, ...rules())
}

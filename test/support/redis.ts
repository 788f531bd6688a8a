/** A real redis-server on loopback for one test file. */

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { noteSecret } from './canaries.ts'
import { freePort } from './ports.ts'

export class RedisServer {
  readonly port: number
  readonly url: string
  readonly #dir: string
  #process: ChildProcess | undefined

  private constructor(port: number) {
    this.port = port
    this.url = `redis://127.0.0.1:${port}`
    this.#dir = mkdtempSync(join(tmpdir(), 'powgate-redis-'))
  }

  static async start(extraArgs: readonly string[] = []): Promise<RedisServer> {
    const server = new RedisServer(await freePort())
    await server.boot(extraArgs)
    return server
  }

  /** Starts it on its port; also after `kill`. Nothing is persisted, so it starts empty. */
  async boot(extraArgs: readonly string[] = []): Promise<void> {
    const password = extraArgs[extraArgs.indexOf('--requirepass') + 1]
    if (password !== undefined && extraArgs.includes('--requirepass')) noteSecret('redis password', password)
    const args = ['--port', String(this.port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no']
    this.#process = spawn('redis-server', [...args, '--dir', this.#dir, ...extraArgs], { stdio: 'ignore' })
    await untilAccepting(this.port)
  }

  /** kill -9; resolves when it has gone. */
  async kill(): Promise<void> {
    await this.#end('SIGKILL')
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

  async stop(): Promise<void> {
    await this.#end('SIGKILL')
    rmSync(this.#dir, { recursive: true, force: true })
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const child = this.#process
    this.#process = undefined
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    const gone = once(child, 'exit')
    child.kill(signal)
    await gone
  }
}

async function untilAccepting(port: number): Promise<void> {
  for (let attempt = 0; attempt < 500; attempt++) {
    const isOpen = await new Promise<boolean>(resolve => {
      const socket = connect({ port, host: '127.0.0.1' })
      socket.once('connect', () => resolve(true))
      socket.once('error', () => resolve(false))
      socket.once('close', () => resolve(false))
      socket.once('connect', () => socket.destroy())
    })
    if (isOpen) return
    await new Promise(resolve => setTimeout(resolve, 10))
  }
  throw new Error(`redis-server does not accept connections on port ${port}`)
}

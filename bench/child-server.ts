/** Servers of a bench, each in a process of its own. */

import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { endProcess, leftovers } from '../test/harness/processes.ts'

export class ChildServer {
  readonly port: number
  readonly #process: ChildProcess

  private constructor(child: ChildProcess, port: number) {
    this.#process = child
    this.port = port
  }

  /** @param path its entry, which sends the port to its parent */
  static async start(path: string, args: readonly string[] = []): Promise<ChildServer> {
    const child = fork(path, [...args])
    const ended = once(child, 'exit').then(([code]) =>
      Promise.reject(new Error(`${path} ended with ${code as number}`)),
    )
    ended.catch(() => {}) // every server is stopped in the end
    const [port] = await Promise.race([once(child, 'message'), ended])
    const server = new ChildServer(child, port as number)
    leftovers.add(server)
    return server
  }

  get pid(): number {
    return this.#process.pid!
  }

  async stop(): Promise<void> {
    leftovers.delete(this)
    await endProcess(this.#process)
  }
}

/** A server in a process of its own, which reports its port when it listens. */

import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'

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
    return new ChildServer(child, port as number)
  }

  get pid(): number {
    return this.#process.pid!
  }

  async stop(): Promise<void> {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return
    const ended = once(this.#process, 'exit')
    this.#process.kill()
    await ended
  }
}

const BARE = new URL('./load/bare.ts', import.meta.url).pathname

/** uWebSockets.js alone. @param answerBytes the length of an answer, its head included, if its date has the usual length */
export function startBare(answerBytes: number): Promise<ChildServer> {
  return ChildServer.start(BARE, [String(answerBytes)])
}

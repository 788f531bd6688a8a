/** Holds the one server that a bench runs at a time, and stops this server however the bench ends. */

import type { RunningServer } from './server.ts'

export class ServerSlot {
  #server: Promise<RunningServer> | undefined
  #isStopped = false

  /** The server before must have been stopped. */
  async start<Server extends RunningServer>(start: () => Promise<Server>): Promise<Server> {
    if (this.#isStopped) throw new Error('the bench was stopped')
    const starting = start()
    this.#server = starting
    try {
      return await starting
    } catch (error) {
      this.#server = undefined
      throw error
    }
  }

  async stop(): Promise<void> {
    const server = this.#server
    this.#server = undefined
    await (await server)?.stop()
  }

  /** Ends the server that runs or starts now; no other will be started. */
  async end(): Promise<void> {
    this.#isStopped = true
    await this.stop()
  }
}

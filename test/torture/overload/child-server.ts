/** A server in a process of its own, which reports its port when it listens. */

import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'
import { challengeText } from '../visitor-requests.ts'

const BARE = new URL('../../../bench/http/bare.ts', import.meta.url).pathname
const REFUSING = new URL('./refusing-child.ts', import.meta.url).pathname
const TRIES = 5

export class ChildServer {
  readonly port: number
  readonly #process: ChildProcess

  private constructor(child: ChildProcess, port: number) {
    this.#process = child
    this.port = port
  }

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

  stop(): void {
    this.#process.kill()
  }
}

export const startRefusing = () => ChildServer.start(REFUSING)

/** uWebSockets.js alone. @param bytes the length of its answers, their heads included */
export async function startBareOf(bytes: number): Promise<ChildServer> {
  let argument = bytes
  for (let count = 0; count < TRIES; count++) {
    const server = await ChildServer.start(BARE, [String(argument)])
    const { length } = await challengeAnswer(server.port)
    if (length === bytes) return server
    server.stop()
    argument += bytes - length
  }
  throw new Error(`the bare server has no answer of ${bytes} bytes`)
}

/** All bytes of the answer to a request for a challenge, its head included. */
export async function challengeAnswer(port: number, siteKey = 'none'): Promise<string> {
  const socket = connect({ port, host: '127.0.0.1' })
  socket.write(challengeText(siteKey, '13.0.0.1'))
  let answer = ''
  try {
    for await (const chunk of socket) {
      answer += (chunk as Buffer).toString('latin1')
      const headEnd = answer.indexOf('\r\n\r\n')
      const length = Number(/\r\ncontent-length: (\d+)/i.exec(answer)?.[1] ?? 0)
      if (headEnd >= 0 && answer.length >= headEnd + 4 + length) return answer
    }
  } finally {
    socket.destroy()
  }
  throw new Error('the connection was closed without an answer')
}

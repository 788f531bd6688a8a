/** The servers that a refusal is compared with. */

import { connect } from 'node:net'
import { challengeText } from '../../harness/load/visitor-requests.ts'
import { ChildServer, startBare } from '../../harness/processes.ts'

const REFUSING = new URL('./refusing-child.ts', import.meta.url).pathname
const TRIES = 5

export const startRefusing = () => ChildServer.start(REFUSING)

/** uWebSockets.js alone. @param bytes the length of its answers, their heads included */
export async function startBareOf(bytes: number): Promise<ChildServer> {
  let argument = bytes
  for (let count = 0; count < TRIES; count++) {
    const server = await startBare(argument)
    const { length } = await challengeAnswer(server.port)
    if (length === bytes) return server
    await server.stop()
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

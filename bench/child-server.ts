/** Servers of a bench, each in a process of its own. */

import { fork } from 'node:child_process'
import { once } from 'node:events'
import { endProcess, leftovers } from '../test/harness/processes.ts'

/** Resolves when the server listens. A bench that is interrupted stops it too (`leftovers`). @param path its entry, which sends its parent a message then: the port, if it has one */
export async function startChildServer(path: string, args: readonly string[] = [], endsBy?: 'SIGKILL') {
  const child = fork(path, [...args])
  const stop = async () => {
    leftovers.delete(running)
    await endProcess(child, endsBy)
  }
  const running = { stop }
  leftovers.add(running)
  const ended = once(child, 'exit').then(([code]) =>
    Promise.reject(new Error(`${path} ended with ${code as number}`)),
  )
  ended.catch(() => {}) // every server is stopped in the end
  const [port] = await Promise.race([once(child, 'message'), ended])
  return { port: port as number, pid: child.pid!, stop }
}

/**
 * Makes this process the owner of a data directory. The owner is the process whose socket has the shared name in it, which all
 * clients connect to.
 */

import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { linkSync, lstatSync, renameSync, rmSync } from 'node:fs'
import { connect, createServer, type Server } from 'node:net'
import { dirname, join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { OperatorError } from '../../words/errors.ts'
import { systemErrorText } from '../../words/system-error.ts'
import { socketPath } from './data-dir.ts'

const RETRY_MS = 50
/** A command, or an owner that saves its state, ends within this time. */
const WAIT_MS = 10_000
/** A command that owns a directory calls itself by a name that begins so, by which `isServed` tells it from a service. */
export const A_COMMAND = 'a command'
/** An owner answers within this time. A process that was stopped still accepts connections, but answers nothing. */
const ASK_MS = 2000

export interface OwnerOptions {
  readonly dataDir: string
  /** Called once, with the name of the owner whose end is awaited. */
  readonly onWaiting?: (who: string) => void
  readonly waitMs?: number
}

/** Waits until no other process has the socket. @throws OperatorError */
export async function ownSocket({ dataDir, onWaiting, waitMs = WAIT_MS }: OwnerOptions) {
  const path = socketPath(dataDir)
  let giveUpAt = performance.now() + waitMs
  let isReported = false
  let wasEnding = false
  for (;;) {
    const owner = lstatSync(path, { throwIfNoEntry: false }) && (await askToLeave(path))
    if (owner === 'none') await removeDeadSocket(path)
    else if (owner === undefined) {
      const server = await tryToOwn(path)
      if (server !== undefined) return { server, path }
    } else {
      const isEnding = owner === 'ends'
      // An owner that saves its state gets the whole time for that.
      if (isEnding && !wasEnding) giveUpAt = performance.now() + waitMs
      wasEnding = isEnding
      const who = isEnding ? 'a process that does not end' : owner.who
      if (performance.now() > giveUpAt)
        throw new OperatorError(
          `POWGATE_DATA_DIR: ${resolve(dataDir)} is in use by ${who}: end that first, or give each service a directory of its own`,
        )
      if (!isEnding && !isReported) {
        onWaiting?.(who)
        isReported = true
      }
      await sleep(RETRY_MS)
    }
  }
}

/**
 * Binds the socket under a temporary name, and links the shared name to it. If it were bound under the shared name, Node.js would
 * remove that name when it closes the socket, even if another process had taken it by then.
 *
 * @returns undefined if another process has just taken the name
 */
async function tryToOwn(path: string): Promise<Server | undefined> {
  const server = createServer()
  const temporary = temporaryName(path)
  try {
    await once(server.listen(temporary), 'listening')
    linkSync(temporary, path)
    rmSync(temporary)
    return server
  } catch (error) {
    server.close()
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return undefined
    throw socketError(path, error)
  }
}

/**
 * True if a service has the socket. Waits while a command has it, which ends with its own work, or while an owner ends that was asked to.
 *
 * @throws OperatorError
 */
export async function isServed(path: string): Promise<boolean> {
  const giveUpAt = performance.now() + WAIT_MS
  for (;;) {
    const owner = await askToLeave(path)
    if (owner === 'none') return false
    const isLeaving = owner === 'ends' || owner.who.startsWith(A_COMMAND)
    if (!isLeaving || performance.now() > giveUpAt) return true
    await sleep(RETRY_MS)
  }
}

/** Five characters, as many as the shared name has, so the path is as long. The first is a digit: no other file has such a name. */
function temporaryName(path: string): string {
  return join(dirname(path), randomInt(36 ** 4, 10 * 36 ** 4).toString(36))
}

/** `none` if nobody listens, as after a crash; `ends` if the owner is about to end; `who` is what any other owner calls itself. */
type Owner = 'none' | 'ends' | { readonly who: string }

/** An owner whose service has gone ends when it is asked; any other answers with its name. */
function askToLeave(path: string): Promise<Owner> {
  return new Promise((done, fail) => {
    const socket = connect(path, () => socket.write('*1\r\n$5\r\nLEAVE\r\n'))
    socket.setTimeout(ASK_MS, () => {
      done({ who: 'a process that does not answer' })
      socket.destroy()
    })
    socket.once('data', reply => {
      socket.destroy()
      const text = reply.toString().trim()
      done(text.startsWith('+') ? 'ends' : { who: text.replace(/^-ERR /, '') })
    })
    socket.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'ECONNREFUSED' || error.code === 'ENOENT') done('none')
      else if (error.code === 'ECONNRESET' || error.code === 'EPIPE') done('ends')
      else fail(socketError(path, error))
    })
    socket.on('close', () => done('ends'))
  })
}

/**
 * Removes a crashed owner's socket. It is renamed first, and put back if somebody answers on it: a service B may have just taken the
 * name. If a service C has the name by then, B's is not put back: B notices that, and refuses everything (server.ts).
 */
async function removeDeadSocket(path: string): Promise<void> {
  const aside = temporaryName(path)
  try {
    renameSync(path, aside)
    if ((await askToLeave(aside)) !== 'none') linkSync(aside, path)
  } catch (error) {
    if (!['ENOENT', 'EEXIST'].includes((error as NodeJS.ErrnoException).code!)) throw socketError(path, error)
  }
  rmSync(aside, { force: true })
}

function socketError(path: string, error: unknown): OperatorError {
  return new OperatorError(`POWGATE_DATA_DIR: cannot use the socket ${path}: ${systemErrorText(error)}`)
}

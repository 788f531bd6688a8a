/**
 * Makes this process the owner of a data directory. The owner is the process whose socket has the shared name in it, which all
 * clients connect to.
 */

import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { linkSync, renameSync, rmSync } from 'node:fs'
import { connect, createServer, type Server } from 'node:net'
import { dirname, join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { OperatorError } from '../../words/errors.ts'
import { systemErrorText } from '../../words/system-error.ts'
import { socketPath } from './data-dir.ts'

const RETRY_MS = 50
/** A command, or an owner that saves its state, ends within this time. */
const WAIT_MS = 10_000
/** The name of a command that is the store begins with this. */
export const A_COMMAND = 'a command'
/** An owner answers within this time. A process that was stopped still accepts connections, but answers nothing. */
const ASK_MS = 2000

export interface OwnerOptions {
  readonly dataDir: string
  /** Called once, with the name of the owner whose end is awaited. */
  readonly onWaiting?: (who: string) => void
  /** Asked while it waits: true if this process was told to end meanwhile. */
  readonly isToldToEnd?: () => boolean
  /** Replaces WAIT_MS. */
  readonly waitMs?: number
}

/**
 * Binds the socket under a temporary name, and links the shared name to it once no other process has that. If it were bound under
 * the shared name, Node.js would remove that name when it closes the socket, even if another process had taken it by then.
 *
 * @throws OperatorError
 */
export async function ownSocket(options: OwnerOptions): Promise<{ server: Server; path: string }> {
  const path = socketPath(options.dataDir)
  const server = createServer()
  const temporary = temporaryName(path)
  try {
    await once(server.listen(temporary), 'listening')
  } catch (error) {
    throw socketError(temporary, error)
  }
  try {
    await takeSharedName(temporary, path, options)
    return { server, path }
  } catch (error) {
    server.close()
    throw error
  }
}

/**
 * True if a service has the socket. Waits while a command has it: that ends with its own work, and would not answer another's.
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

/** Five characters, the first a digit: no other file has such a name, and a longer one than the shared name might not fit. */
function temporaryName(path: string): string {
  return join(dirname(path), randomInt(36 ** 4, 10 * 36 ** 4).toString(36))
}

async function takeSharedName(
  temporary: string,
  path: string,
  { dataDir, onWaiting, isToldToEnd, waitMs = WAIT_MS }: OwnerOptions,
): Promise<void> {
  const giveUpAt = performance.now() + waitMs
  for (let isReported = false; !tryLink(temporary, path); ) {
    if (isToldToEnd?.()) throw new OperatorError('told to end while another process had the data directory')
    const owner = await askToLeave(path)
    if (owner === 'none') {
      await removeDeadSocket(path)
      continue
    }
    if (owner !== 'ends') {
      if (performance.now() > giveUpAt)
        throw new OperatorError(
          `POWGATE_DATA_DIR: ${resolve(dataDir)} is in use by ${owner.who}: end that first, or give each service a directory of its own`,
        )
      if (!isReported) onWaiting?.(owner.who)
      isReported = true
    }
    await sleep(RETRY_MS)
  }
  rmSync(temporary)
}

/** Returns false if the name is taken. */
function tryLink(from: string, to: string): boolean {
  try {
    linkSync(from, to)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw socketError(to, error)
  }
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
 * Removes a crashed owner's socket. It is renamed first, and put back if somebody answers on it: another service may have just taken
 * the name. If a third has the name by then, that service notices that its own is gone, and refuses everything (server.ts).
 */
async function removeDeadSocket(path: string): Promise<void> {
  const aside = temporaryName(path)
  try {
    renameSync(path, aside)
    if ((await askToLeave(aside)) !== 'none') tryLink(aside, path)
    rmSync(aside)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw socketError(path, error)
  }
}

function socketError(path: string, error: unknown): OperatorError {
  return new OperatorError(`POWGATE_DATA_DIR: cannot use the socket ${path}: ${systemErrorText(error)}`)
}

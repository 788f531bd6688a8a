/** Makes this process the owner of a data directory: whoever has bound the socket in it under its shared name. */

import { randomInt } from 'node:crypto'
import { linkSync, renameSync, rmSync } from 'node:fs'
import { connect, createServer, type Server } from 'node:net'
import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { systemErrorText } from '../../words/system-error.ts'
import { StoreSetupError } from '../store.ts'
import { socketPath } from './data-dir.ts'

const RETRY_MS = 50
/** A new owner waits so long for a command to end, or for an owner that saves its state. */
const WAIT_MS = 10_000
/** An owner must say within this time who it is: a stopped process still accepts connections. */
const ASK_MS = 2000

export interface OwnerOptions {
  readonly dataDir: string
  /** Told of the owner that is waited for. */
  readonly onWaiting?: (who: string) => void
  /** True if this process is to end too. Asked while it waits for an owner to end. */
  readonly isUnwanted?: () => boolean
  /** An owner must end within this time. */
  readonly waitMs?: number
}

/**
 * Binds the socket by a name of its own and links the shared name to it, once nobody else has that. If it were bound by the shared
 * name, Node.js would remove that name when it closes the socket, even if another process had taken it by then.
 *
 * @throws StoreSetupError
 */
export async function ownSocket(options: OwnerOptions): Promise<{ server: Server; path: string }> {
  const path = socketPath(options.dataDir)
  const server = createServer()
  // This name is as long as the shared one, which was checked to fit: the kernel would cut the end of a longer name.
  const own = join(
    path,
    '..',
    `n${randomInt(36 ** 4)
      .toString(36)
      .padStart(4, '0')}`,
  )
  await listening(server, own)
  try {
    await takeSharedName(own, path, options)
    return { server, path }
  } catch (error) {
    server.close()
    throw error
  }
}

function listening(server: Server, path: string): Promise<void> {
  return new Promise((done, fail) => {
    server.once('listening', done)
    server.once('error', error => fail(socketError(path, error)))
    server.listen(path)
  })
}

async function takeSharedName(
  own: string,
  path: string,
  { dataDir, onWaiting, isUnwanted, waitMs = WAIT_MS }: OwnerOptions,
): Promise<void> {
  const giveUpAt = performance.now() + waitMs
  for (let isTold = false; !links(own, path); ) {
    if (isUnwanted?.()) throw new StoreSetupError('told to end while another process had the data directory')
    const { status, who } = await ownerOf(path)
    if (status === 'none') {
      await putAside(path)
      continue
    }
    if (status === 'stays' && performance.now() > giveUpAt)
      throw new StoreSetupError(
        `POWGATE_DATA_DIR: ${resolve(dataDir)} is in use by ${who}: end that first, or give each service a directory of its own`,
      )
    if (status === 'stays' && !isTold) onWaiting?.(who)
    isTold ||= status === 'stays'
    await sleep(RETRY_MS)
  }
  rmSync(own)
}

function links(from: string, to: string): boolean {
  try {
    linkSync(from, to)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw socketError(to, error)
  }
}

/** `none`: nobody answers, such as after a crash. */
interface Owner {
  readonly status: 'none' | 'ends' | 'stays'
  /** Named by an owner that stays. */
  readonly who: string
}
const NONE: Owner = { status: 'none', who: '' }
const ENDS: Owner = { status: 'ends', who: '' }

function ownerOf(path: string): Promise<Owner> {
  return new Promise((done, fail) => {
    const stays = (who: string) => done({ status: 'stays', who })
    const socket = connect(path, () => socket.write('*1\r\n$5\r\nLEAVE\r\n'))
    socket.setTimeout(ASK_MS, () => {
      stays('a process that does not answer')
      socket.destroy()
    })
    socket.once('data', reply => {
      socket.destroy()
      const text = reply.toString().trim()
      if (text.startsWith('+')) done(ENDS)
      else stays(text.replace(/^-ERR /, ''))
    })
    socket.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'ECONNREFUSED' || error.code === 'ENOENT') done(NONE)
      else if (error.code === 'ECONNRESET' || error.code === 'EPIPE') done(ENDS)
      else fail(socketError(path, error))
    })
    socket.on('close', () => done(ENDS))
  })
}

/** Renames a crashed owner's socket before removing it, because another service may have just made a new one at its place. */
async function putAside(path: string): Promise<void> {
  const aside = `${path}.${process.pid}`
  try {
    renameSync(path, aside)
    if ((await ownerOf(aside)).status !== 'none') linkSync(aside, path)
    rmSync(aside)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code !== 'ENOENT' && code !== 'EEXIST') throw socketError(path, error)
  }
}

function socketError(path: string, error: unknown): StoreSetupError {
  return new StoreSetupError(`POWGATE_DATA_DIR: cannot use the socket ${path}: ${systemErrorText(error)}`)
}

/**
 * The data directory of the embedded store.
 *
 *   sites.jsonl    sites, API keys and the audit log: see sites-file.ts
 *   state          what requests left behind, written at an orderly stop, state.reading while a start reads it: see snapshot.ts
 *   store          Unix socket of the store process: see server.ts
 *   secret         the master secret, unless one is configured: see config/secrets.ts
 *   service-url    where the service listens: see sites/service-files.ts
 *   first-keys     the keys of the first start's site: see there too
 */

import { accessSync, constants, existsSync, lchownSync, mkdirSync, statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { shellWord } from '../../config/config.ts'
import { OperatorError } from '../../words/errors.ts'
import { systemErrorText } from '../../words/system-error.ts'

/** A service has this file once it serves, and by then it has a site. */
export const SERVICE_URL = 'service-url'

export const hasServedFrom = (dataDir: string): boolean => existsSync(join(dataDir, SERVICE_URL))

/** Makes the directory if it `makes` one, and checks that this process can use it. @throws OperatorError */
export function prepareDataDir(dataDir: string, { makes }: { makes: boolean }): void {
  try {
    if (makes) makeDir(resolve(dataDir))
    accessSync(`${dataDir}/.`, constants.R_OK | constants.W_OK | constants.X_OK) // a file has no "/."
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    const path = resolve(dataDir)
    throw new OperatorError(
      code === 'ENOENT' && !makes
        ? `POWGATE_DATA_DIR: ${path} does not exist, and only serve creates it. Name the directory of the service, here or in the file of --config`
        : `POWGATE_DATA_DIR: cannot use the directory ${path}: ${systemErrorText(error)}`,
    )
  }
}

/** Makes the folders one by one, because `recursive` never returns below /proc (Node.js 20). */
function makeDir(path: string): void {
  if (existsSync(path)) return
  makeDir(dirname(path))
  try {
    mkdirSync(path, { mode: 0o700 })
  } catch (error) {
    // Another process may have made it.
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
}

/** A warning if others can read or write the directory. */
export function accessWarningOf(dataDir: string): string | undefined {
  const path = resolve(dataDir)
  const mode = statSync(path).mode & 0o777
  if ((mode & 0o077) === 0) return undefined
  return `POWGATE_DATA_DIR: other users can reach ${path} (mode ${mode.toString(8)}), which holds the secret and the sites: chmod 700 ${shellWord(path)}`
}

/** Gives what a command of root makes to the directory's user, or the `owner`, so that the service can use it. A link is not followed. */
export function giveToUser(path: string, owner = statSync(dirname(path))): void {
  if (process.getuid?.() !== 0) return
  try {
    lchownSync(path, owner.uid, owner.gid)
  } catch {
    // The root of a container may lack the right. Then the service is most likely root too.
  }
}

const SOCKET = 'store'
/** The kernel's limit of a socket's path. */
const PATH_BYTES_MAX = 107

/** @throws OperatorError */
export function socketPath(dataDir: string): string {
  const path = join(resolve(dataDir), SOCKET)
  if (Buffer.byteLength(path) <= PATH_BYTES_MAX) return path
  throw new OperatorError(
    `POWGATE_DATA_DIR: ${path} is longer than the ${PATH_BYTES_MAX} bytes of a socket's path: move the directory, or name it by a shorter path`,
  )
}

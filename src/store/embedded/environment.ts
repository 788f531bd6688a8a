/**
 * The LMDB files in a data directory, which all processes of a machine share.
 *
 *   sites/        sites, API keys and the audit log: on disk before a write is answered
 *   state/        limits, used nonces, redemption records, meters: not synced, so deleted after a reboot. The new epoch then
 *                 refuses what was issued before. A crash of powgate loses nothing.
 *   owner.<pid>   see owner.ts
 */

import { randomInt } from 'node:crypto'
import {
  accessSync,
  constants,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { shellWord } from '../../config/config.ts'
import { systemErrorText } from '../../words/system-error.ts'
import { StoreSetupError } from '../store.ts'
import { SITES_ROOM_BYTES, STATE_ROOM_BYTES } from './room.ts'
import { LockedFile } from './write-lock.ts'

export type SitesEnvironment = ReturnType<typeof openSites>
export type StateEnvironment = ReturnType<typeof openState>

/** A start deletes a state of another layout, as after a reboot. In a roll, workers refuse instead: others still write it. */
const STATE_LAYOUT = 5
const LAYOUT_MARK = ` layout ${STATE_LAYOUT}`

/**
 * @param makes whether to create it
 * @throws StoreSetupError
 */
export function prepareDataDir(dataDir: string, makes: boolean): void {
  try {
    if (makes) makeDir(resolve(dataDir))
    accessSync(`${dataDir}/.`, constants.R_OK | constants.W_OK | constants.X_OK)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    const path = resolve(dataDir)
    throw new StoreSetupError(
      code === 'ENOENT' && !makes
        ? `POWGATE_DATA_DIR: ${path} does not exist, and only serve creates it. Name the directory of the service, here or in the file of --config`
        : `POWGATE_DATA_DIR: cannot use the directory ${path}: ${systemErrorText(error)}`,
    )
  }
}

/** Not by `recursive`, which never returns below /proc (Node.js 20). */
function makeDir(path: string): void {
  if (existsSync(path)) return
  makeDir(dirname(path))
  try {
    mkdirSync(path, { mode: 0o700 })
  } catch (error) {
    // Another process may have made it meanwhile.
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
}

/** A warning if others can read or write the directory. */
export function opennessOf(dataDir: string): string | undefined {
  const path = resolve(dataDir)
  const mode = statSync(path).mode & 0o777
  if ((mode & 0o077) === 0) return undefined
  return `POWGATE_DATA_DIR: other users can reach ${path} (mode ${mode.toString(8)}), which holds the secret and the sites: chmod 700 ${shellWord(path)}`
}

export function openSites(dataDir: string) {
  return orSetupError(dataDir, () => {
    const file = new LockedFile({ path: join(dataDir, 'sites'), maxDbs: 8 }, SITES_ROOM_BYTES)
    const openDb = (name: string) => file.root.openDB<string, string>(name, { encoding: 'string' })
    return file.hold(() => ({
      file,
      records: openDb('records'),
      changes: openDb('changes'),
      audit: openDb('audit'),
      uses: openDb('uses'),
    }))
  })
}

/** @throws StoreSetupError, also for another layout */
export function openState(dataDir: string) {
  return orSetupError(dataDir, () => {
    const mark = textOf(bootFile(dataDir))
    if (mark !== '' && !mark.endsWith(LAYOUT_MARK))
      throw new Error('its state is another version’s: restart the service, this change cannot be rolled out')
    const path = join(dataDir, 'state')
    const options = { path, maxDbs: 8, noSync: true, overlappingSync: false }
    const file = new LockedFile(options, STATE_ROOM_BYTES)
    const { root } = file
    const bytes = { encoding: 'binary', keyEncoding: 'binary' } as const
    return file.hold(() => ({
      file,
      /** This and `marks`: see requests.ts. */
      windows: root.openDB<Buffer, Buffer>('windows', bytes),
      marks: root.openDB<Buffer, Buffer>('marks', bytes),
      /** Written to test the disk. */
      probe: root.openDB<string, string>('probe', { encoding: 'string' }),
      epoch: epochOf(file),
    }))
  })
}

const metaOf = ({ root }: LockedFile) => root.openDB<number, string>('meta', {})

/** For processes that open the state from now on. */
export function setEpoch({ file }: Pick<StateEnvironment, 'file'>, epoch: number): void {
  const meta = file.hold(() => metaOf(file))
  file.write(() => meta.putSync('epoch', epoch))
}

function epochOf(file: LockedFile): number {
  const meta = metaOf(file)
  // Writes nothing, so also on a full disk.
  const present = file.root.transactionSync(() => meta.get('epoch'))
  if (present !== undefined) return present
  return file.write(() => {
    const drawn = randomInt(2 ** 32)
    meta.putSync('epoch', drawn)
    return drawn
  })
}

function orSetupError<T>(dataDir: string, action: () => T): T {
  try {
    return action()
  } catch (error) {
    if (error instanceof StoreSetupError) throw error
    throw new StoreSetupError(
      `POWGATE_DATA_DIR: cannot open the data in ${dataDir}: ${systemErrorText(error)}`,
    )
  }
}

/** Deletes another boot's state. For the primary before it forks: no process may have the files open. */
export function discardStaleState(dataDir: string, bootId = machineBootId()): void {
  if (isStateOfThisBoot(dataDir, bootId)) return
  const path = join(dataDir, 'state')
  rmSync(path, { recursive: true, force: true })
  mkdirSync(path, { recursive: true, mode: 0o700 })
  writeFileSync(bootFile(dataDir), bootId + LAYOUT_MARK)
}

/** The next start will discard the state. */
export function forgetBoot(dataDir: string): void {
  rmSync(bootFile(dataDir), { force: true })
}

export function isStateOfThisBoot(dataDir: string, bootId = machineBootId()): boolean {
  return bootId !== '' && textOf(bootFile(dataDir)) === bootId + LAYOUT_MARK
}

function bootFile(dataDir: string): string {
  return join(dataDir, 'state', 'boot-id')
}

/** Changes with every boot; may be empty. */
export function machineBootId(): string {
  return textOf('/proc/sys/kernel/random/boot_id').trim()
}

/** Empty if unreadable. */
function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

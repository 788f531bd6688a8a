/**
 * The LMDB files of the embedded store, shared by all processes of one machine.
 *
 *   <data dir>/sites/   sites, API keys and the audit log: every write is on disk before it is answered
 *   <data dir>/state/   limits, used nonces and redemption records: not synced, because the state is trusted only while the
 *                       machine that wrote it stays up. After a reboot the state is deleted and gets a new epoch. Whatever
 *                       was issued before is then refused, not accepted twice. Restarts and crashes of powgate lose nothing.
 */

import { randomInt } from 'node:crypto'
import { accessSync, constants, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { Database } from 'lmdb'
import { StoreSetupError } from '../store.ts'
import { LockedFile } from './write-lock.ts'

export interface SitesEnvironment {
  readonly file: LockedFile
  /** JSON records by `s/<site key>` or `k/<key id>`. */
  readonly records: Database<string, string>
  /** Which record changed when; see records.ts. */
  readonly changes: Database<string, string>
  /** JSON of audit entries; see records.ts. */
  readonly audit: Database<string, string>
  /** When an API key was last used, by its id. */
  readonly uses: Database<string, string>
  /** JSON of a Learned by site key. */
  readonly speeds: Database<string, string>
}

export interface StateEnvironment {
  readonly file: LockedFile
  /** Address logs with their used nonces, and windows of callers and API keys; see requests.ts. */
  readonly windows: Database<Buffer, Buffer>
  /** Redemption records, and used nonces outside of address logs; see requests.ts. */
  readonly marks: Database<Buffer, Buffer>
  /** JSON of a LoadState by site key. */
  readonly loads: Database<string, string>
  /** Drawn when the files were made. */
  readonly epoch: number
}

/**
 * Layout of the state's files. Files with another version's layout are deleted at the start, as after a reboot, because their
 * records could not be found. In a roll, workers do not start on another version's layout: the other workers still write it.
 */
const STATE_LAYOUT = 4
const LAYOUT_MARK = ` layout ${STATE_LAYOUT}`

/**
 * Makes sure that the directory can be used. Throws StoreSetupError.
 *
 * @param makes whether it is made where there is none
 */
export function prepareDataDir(dataDir: string, makes: boolean): void {
  try {
    if (makes) mkdirSync(dataDir, { recursive: true, mode: 0o700 })
    accessSync(`${dataDir}/.`, constants.R_OK | constants.W_OK | constants.X_OK)
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    const path = resolve(dataDir)
    throw new StoreSetupError(
      code === 'ENOENT'
        ? `POWGATE_DATA_DIR: there is no ${path}, and only serve makes it: name the directory of the service, here or in the file of --config`
        : `POWGATE_DATA_DIR: cannot use the directory ${path}: ${message}`,
    )
  }
}

export function openSites(dataDir: string): SitesEnvironment {
  return orSetupError(dataDir, () => {
    const file = new LockedFile({ path: join(dataDir, 'sites'), maxDbs: 8 })
    const { root } = file
    const text = { encoding: 'string' } as const
    return file.hold(() => ({
      file,
      records: root.openDB('records', text),
      changes: root.openDB('changes', text),
      audit: root.openDB('audit', text),
      uses: root.openDB('uses', text),
      speeds: root.openDB('speeds', text),
    }))
  })
}

/** Throws StoreSetupError, also if the state has another version's layout. */
export function openState(dataDir: string): StateEnvironment {
  return orSetupError(dataDir, () => {
    const mark = readOr(bootFile(dataDir), '')
    if (mark !== '' && !mark.endsWith(LAYOUT_MARK))
      throw new Error('its state is another version’s: restart the service, this change cannot be rolled out')
    const file = new LockedFile({
      path: join(dataDir, 'state'),
      maxDbs: 8,
      noSync: true,
      overlappingSync: false,
    })
    const { root } = file
    const bytes = { encoding: 'binary', keyEncoding: 'binary' } as const
    return file.hold(() => ({
      file,
      windows: root.openDB('windows', bytes),
      marks: root.openDB('marks', bytes),
      loads: root.openDB('loads', { encoding: 'string' }),
      epoch: epochOf(file),
    }))
  })
}

function epochOf(file: LockedFile): number {
  const meta = file.root.openDB<number, string>('meta', {})
  return file.write(() => {
    const present = meta.get('epoch')
    if (present !== undefined) return present
    const drawn = randomInt(2 ** 32)
    meta.putSync('epoch', drawn)
    return drawn
  })
}

function orSetupError<T>(dataDir: string, action: () => T): T {
  try {
    return action()
  } catch (error) {
    throw new StoreSetupError(
      `POWGATE_DATA_DIR: cannot open the data in ${dataDir}: ${(error as Error).message}`,
    )
  }
}

/**
 * Deletes the state if another boot of the machine left it. Only the primary process calls this, before it forks: no process
 * may have the files open.
 */
export function discardStaleState(dataDir: string, bootId = machineBootId()): void {
  if (isStateOfThisBoot(dataDir, bootId)) return
  const path = join(dataDir, 'state')
  rmSync(path, { recursive: true, force: true })
  mkdirSync(path, { recursive: true, mode: 0o700 })
  writeFileSync(bootFile(dataDir), markOf(bootId))
}

/** False on a machine without boot ids, which may have been rebooted since. */
export function isStateOfThisBoot(dataDir: string, bootId = machineBootId()): boolean {
  return bootId !== '' && readOr(bootFile(dataDir), '') === markOf(bootId)
}

function bootFile(dataDir: string): string {
  return join(dataDir, 'state', 'boot-id')
}

function markOf(bootId: string): string {
  return bootId + LAYOUT_MARK
}

/** An id that changes whenever the machine boots; empty if there is none. */
export function machineBootId(): string {
  return readOr('/proc/sys/kernel/random/boot_id', '').trim()
}

function readOr(path: string, otherwise: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return otherwise
  }
}

/**
 * What is looked at before the files of a data directory are opened, so that damage is a line and not a crash, and never
 * an empty store. Sites are all there is of them: damaged, they stop the start. The state can be thrown away, as after a reboot: what
 * was issued before is refused rather than forgotten.
 */

import { existsSync, readdirSync, rmSync, statfsSync } from 'node:fs'
import { join } from 'node:path'
import { StoreSetupError } from '../store.ts'
import { isStateOfThisBoot } from './environment.ts'
import { damageOf } from './lmdb-file.ts'

/** A start needs room for its files and for what it writes at once; full, LMDB's lock file would end the process. */
const FREE_BYTES_MIN = 2 ** 20

const FILE = 'data.mdb'

const LOCKS = ['sites-lock', 'state-lock'] as const
type Part = 'sites' | 'state' | (typeof LOCKS)[number]

/** @throws StoreSetupError if the disk is full */
export function checkRoom(dataDir: string): void {
  const { blocks, bavail, bsize } = statfsSync(dataDir)
  const bytes = bavail * bsize
  // Some file systems do not tell their size.
  if (blocks === 0 || bytes >= FREE_BYTES_MIN) return
  throw new StoreSetupError(
    `POWGATE_DATA_DIR: the disk of ${dataDir} is full (${bytes} bytes are free, ${FREE_BYTES_MIN} are needed): make room, then start again; nothing is lost`,
  )
}

/** @throws StoreSetupError if the sites are damaged, or gone */
export function checkSites(dataDir: string): void {
  const damage = damageIn(dataDir, 'sites') ?? lossOfSites(dataDir)
  if (damage === undefined) return
  const path = join(dataDir, 'sites')
  throw new StoreSetupError(
    `POWGATE_DATA_DIR: the sites in ${path} cannot be used: ${damage}. Put back a copy of that directory; or move it and \`state\` beside it away, start with none, and create them anew from a \`powgate site export\` by \`powgate apply\`. If there never were any, remove both`,
  )
}

/** A service opens its sites before its state: no first start is one with a state and without sites. */
function lossOfSites(dataDir: string): string | undefined {
  const [sites, state] = (['sites', 'state'] as const).map(part => existsSync(join(dataDir, part, FILE)))
  return state && !sites ? `${FILE} is missing, though there is a state beside it` : undefined
}

/**
 * Throws away a damaged state. Nobody may have it open: only the primary calls this, before it forks.
 *
 * @returns what was wrong with it; undefined if nothing
 */
export function discardDamagedState(dataDir: string): string | undefined {
  const damage = damageOfState(dataDir)
  if (damage === undefined) return undefined
  // The mark of the boot stays: the state is this boot's, and empty.
  for (const name of [FILE, 'lock.mdb'])
    rmSync(join(dataDir, 'state', name), { recursive: true, force: true })
  return damage
}

/** Throws away damaged locks (write-lock.ts), which hold nothing. The same holds as for a damaged state. */
export function discardDamagedLocks(dataDir: string): void {
  for (const part of LOCKS)
    if (damageIn(dataDir, part) !== undefined) rmSync(join(dataDir, part), { recursive: true, force: true })
}

export function damageOfState(dataDir: string): string | undefined {
  // That of another boot is thrown away unseen.
  return isStateOfThisBoot(dataDir) ? damageIn(dataDir, 'state') : undefined
}

/** What is wrong with the files, with their path: for a service that has crashed. */
export function damageOfFiles(dataDir: string): string | undefined {
  for (const part of ['sites', 'state', ...LOCKS] as const) {
    const damage = damageIn(dataDir, part)
    if (damage !== undefined) return `${join(dataDir, part, FILE)}: ${damage}`
  }
  return undefined
}

function damageIn(dataDir: string, part: Part): string | undefined {
  const folder = join(dataDir, part)
  try {
    if (!existsSync(folder)) return undefined
    // LMDB makes the lock file first, and a new data file where there is none.
    const isThere = readdirSync(folder).includes(FILE)
    if (!isThere) return existsSync(join(folder, 'lock.mdb')) ? `${FILE} is missing` : undefined
    return damageOf(join(folder, FILE), part === 'state')
  } catch (error) {
    return (error as Error).message
  }
}

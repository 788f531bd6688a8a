/**
 * Checks a data directory's files before they are opened (lmdb-file.ts). Damaged sites stop the start: there is no second copy.
 * A damaged state is deleted, as after a reboot.
 */

import { existsSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { systemErrorText } from '../../words/system-error.ts'
import { StoreSetupError } from '../store.ts'
import { discardStaleState, isStateOfThisBoot } from './environment.ts'
import { damageOf } from './lmdb-file.ts'
import { refuseIfFull } from './room.ts'

const FILE = 'data.mdb'

const LOCKS = ['sites-lock', 'state-lock'] as const
type Part = 'sites' | 'state' | (typeof LOCKS)[number]

/**
 * For the primary before it forks.
 *
 * @returns of a state that was deleted, what was wrong, or that it was of another boot or version
 * @throws StoreSetupError
 */
export function prepareFiles(dataDir: string): { damage?: string; isStale?: boolean } {
  refuseIfFull(dataDir)
  // These hold no data.
  for (const part of LOCKS)
    if (damageIn(dataDir, part) !== undefined) rmSync(join(dataDir, part), { recursive: true, force: true })
  checkSites(dataDir)
  rmSync(join(dataDir, 'networks'), { force: true }) // an earlier version left it
  const isStale = existsSync(join(dataDir, 'state', FILE)) && !isStateOfThisBoot(dataDir)
  discardStaleState(dataDir)
  const damage = damageIn(dataDir, 'state')
  if (damage === undefined) return { isStale }
  // Not the boot id: the empty state is of this boot.
  for (const name of [FILE, 'lock.mdb'])
    rmSync(join(dataDir, 'state', name), { recursive: true, force: true })
  return { damage }
}

/** @throws StoreSetupError */
export function checkSites(dataDir: string): void {
  if (!['sites', 'sites-lock'].every(part => existsSync(join(dataDir, part, FILE)))) refuseIfFull(dataDir)
  const damage = damageIn(dataDir, 'sites') ?? lossOfSites(dataDir)
  if (damage === undefined) return
  const path = join(dataDir, 'sites')
  throw new StoreSetupError(
    `POWGATE_DATA_DIR: the sites in ${path} cannot be used: ${damage}. Put back a copy of that directory; or move it and \`state\` beside it away, start with none, and create them anew from a \`powgate site export\` by \`powgate apply\`. If there never were any, remove both`,
  )
}

/** A service opens its sites first, so a state alone means lost sites. */
function lossOfSites(dataDir: string): string | undefined {
  const [sites, state] = (['sites', 'state'] as const).map(part => existsSync(join(dataDir, part, FILE)))
  return state && !sites ? `${FILE} is missing, though there is a state beside it` : undefined
}

export function damageOfFiles(dataDir: string): string | undefined {
  for (const part of ['sites', 'state', ...LOCKS] as const) {
    const damage = damageIn(dataDir, part)
    if (damage !== undefined) return `${join(dataDir, part, FILE)}: ${damage}`
  }
  return undefined
}

/** @returns undefined also for a missing part */
export function damageIn(dataDir: string, part: Part): string | undefined {
  const folder = join(dataDir, part)
  try {
    if (!existsSync(folder)) return undefined
    // LMDB makes lock.mdb first, and would make a new data file.
    const isThere = readdirSync(folder).includes(FILE)
    if (!isThere) return existsSync(join(folder, 'lock.mdb')) ? `${FILE} is missing` : undefined
    return damageOf(join(folder, FILE), part === 'state')
  } catch (error) {
    return systemErrorText(error)
  }
}

/**
 * Keeps services of two PID namespaces out of one data directory. LMDB knows processes by their ids, so those of two containers
 * would take each other for dead, and break the files. Each service has a file `owner.<pid>` with its boot id and namespace, which
 * it touches every second. A crash leaves the file, so a start waits until it is old.
 */

import {
  existsSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { StoreSetupError } from '../store.ts'
import { machineBootId } from './environment.ts'

const NAME = 'owner.'
const RENEWED_MS = 1000
/** After this without a touch, the service has ended. */
const OLD_MS = 10_000
const LOOKS_MS = 250
const READ_BACK_MS = 50

const WHO = 'a service in another container or PID namespace'

/** @throws StoreSetupError if another PID namespace uses the directory */
export function refuseForeignOwner(dataDir: string): void {
  if (!hasForeignOwner(dataDir)) return
  throw new StoreSetupError(
    `POWGATE_DATA_DIR: ${resolve(dataDir)} is in use by ${WHO}, which cannot share it: run commands in that container (docker exec), give each service its own volume, or end the other one first`,
  )
}

/**
 * @param onWaiting called if there is another owner, which may have crashed
 * @throws StoreSetupError if it goes on
 */
export async function ownDataDir(dataDir: string, onWaiting: (line: string) => void): Promise<void> {
  const waitUntilMs = performance.now() + OLD_MS + RENEWED_MS
  if (hasForeignOwner(dataDir)) onWaiting(`waiting up to ${(OLD_MS + RENEWED_MS) / 1000} s for ${WHO} to end`)
  while (hasForeignOwner(dataDir) && performance.now() < waitUntilMs) await sleep(LOOKS_MS)
  refuseForeignOwner(dataDir)
  for (const file of ownersIn(dataDir)) if (!isRenewed(file)) rmSync(file, { force: true })
  const file = join(dataDir, `${NAME}${process.pid}`)
  const write = () => writeFileSync(file, ownerHere(), { mode: 0o600 })
  const renew = () => (existsSync(file) ? utimesSync(file, new Date(), new Date()) : write())
  orNothing(write)
  await sleep(READ_BACK_MS) // if two start at the same moment, neither has seen the other
  refuseForeignOwner(dataDir)
  setInterval(() => {
    // Another took the directory while this process was frozen.
    if (orNothing(() => hasForeignOwner(dataDir))) refuseForeignOwner(dataDir)
    orNothing(renew)
  }, RENEWED_MS).unref()
  process.on('exit', () => orNothing(() => rmSync(file, { force: true })))
}

function hasForeignOwner(dataDir: string): boolean {
  return ownersIn(dataDir).some(file => {
    const owner = orNothing(() => readFileSync(file, 'utf8')) ?? ''
    return owner !== '' && owner !== ownerHere() && isRenewed(file)
  })
}

/** Disk errors have their own alarms. */
function orNothing<Result>(action: () => Result): Result | undefined {
  try {
    return action()
  } catch {
    return undefined
  }
}

function ownersIn(dataDir: string): string[] {
  return readdirSync(dataDir)
    .filter(name => name.startsWith(NAME))
    .map(name => join(dataDir, name))
}

function isRenewed(file: string): boolean {
  const { mtimeMs } = statSync(file, { throwIfNoEntry: false }) ?? { mtimeMs: 0 }
  return Math.abs(Date.now() - mtimeMs) < OLD_MS
}

/** Without namespaces (macOS) all are the same. */
function ownerHere(): string {
  const namespace = '/proc/self/ns/pid'
  return `${machineBootId()} ${existsSync(namespace) ? readlinkSync(namespace) : ''}`
}

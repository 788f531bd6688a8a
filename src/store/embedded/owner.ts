/**
 * Which PID namespace uses a data directory. LMDB knows its users by their process ids, so processes of two containers would
 * take each other for dead, and break the files. All processes of one namespace may share the directory.
 *
 *   <data dir>/owner   `<boot id> <PID namespace>` of the running service. Its time of change is renewed every second.
 *
 * A crash leaves the file behind. So a start waits until the file is old, and gives up only if somebody goes on renewing it.
 */

import { existsSync, readFileSync, readlinkSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { StoreSetupError } from '../store.ts'
import { machineBootId } from './environment.ts'

const RENEWED_MS = 1000
/** A service that has not renewed the file for so long has ended. */
const OLD_MS = 10_000
const LOOKS_MS = 250

/** @throws StoreSetupError if a service in another PID namespace uses the directory */
export function refuseForeignOwner(dataDir: string): void {
  if (!hasForeignOwner(dataDir)) return
  throw new StoreSetupError(
    `POWGATE_DATA_DIR: ${resolve(dataDir)} is in use by a service in another container or PID namespace, which cannot share it: run commands in that container (docker exec), give each service its own volume, or end the other one first`,
  )
}

/**
 * Makes this process the owner until it ends.
 *
 * @throws StoreSetupError if another owner is there, and stays for longer than a crashed one would
 */
export async function ownDataDir(dataDir: string): Promise<void> {
  const waitUntilMs = performance.now() + OLD_MS + RENEWED_MS
  while (hasForeignOwner(dataDir) && performance.now() < waitUntilMs) await sleep(LOOKS_MS)
  refuseForeignOwner(dataDir)
  const file = fileIn(dataDir)
  const renew = () => {
    try {
      if (isOwn(file)) utimesSync(file, new Date(), new Date())
      else writeFileSync(file, ownerHere(), { mode: 0o600 })
    } catch {
      // A full or lost disk has its own alarms.
    }
  }
  renew()
  setInterval(renew, RENEWED_MS).unref()
  process.on('exit', () => isOwn(file) && rmSync(file, { force: true }))
}

function hasForeignOwner(dataDir: string): boolean {
  const file = fileIn(dataDir)
  try {
    return (
      readFileSync(file, 'utf8') !== ownerHere() && Math.abs(Date.now() - statSync(file).mtimeMs) < OLD_MS
    )
  } catch {
    return false
  }
}

function isOwn(file: string): boolean {
  return existsSync(file) && readFileSync(file, 'utf8') === ownerHere()
}

/** Without namespaces (macOS), the same for all. */
function ownerHere(): string {
  const namespace = '/proc/self/ns/pid'
  return `${machineBootId()} ${existsSync(namespace) ? readlinkSync(namespace) : ''}`
}

function fileIn(dataDir: string): string {
  return join(dataDir, 'owner')
}

/**
 * The state on disk between an orderly stop and the next start. A service removes the file as soon as it serves: after a crash
 * nothing old is read, the epoch is a new one, and what was issued before is refused.
 */

import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { deserialize, serialize } from 'node:v8'
import type { Meter } from '../../domain/meters.ts'
import { systemErrorText } from '../../words/system-error.ts'
import { LAYOUT } from '../wire.ts'
import { giveToUser, hasServedFrom } from './data-dir.ts'
import type { State } from './state.ts'

const NAME = 'state'
/** The state's name while a service reads it. If a start finds it, the last start ended while it read it, and this one would too. */
const READING = `${NAME}.reading`

const NONE_SAVED = 'there is no saved state, as after a kill or power loss: what was issued before is refused'
/** No token, challenge or window lives longer than two hours. */
const OLD_MS = 7_200_000

interface Snapshot {
  readonly layout: number
  readonly bootId: string
  readonly savedAtMs: number
  readonly epoch: number
  readonly windows: ReadonlyMap<string, string>
  readonly marks: ReadonlyMap<string, string>
  readonly meters: ReadonlyMap<string, Meter>
}

/** Changes with every boot; empty where the machine tells none. */
function machineBootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  } catch {
    return ''
  }
}

export function saveState(dataDir: string, state: State, bootId = machineBootId()): void {
  const { epoch, windows, marks, meters } = state
  const snapshot: Snapshot = { layout: LAYOUT, bootId, savedAtMs: Date.now(), epoch, windows, marks, meters }
  const path = join(dataDir, NAME)
  const written = `${path}.new`
  removeSavedState(dataDir) // may be a directory, by mistake
  writeFileSync(written, serialize(snapshot), { mode: 0o600, flag: 'wx' })
  giveToUser(written)
  renameSync(written, path)
}

/**
 * Windows use the monotonic clock, which starts anew with a boot. So only meters are read of an older snapshot, or of one of
 * another boot. Meters must be read: a store without meters takes whatever comes in its first hour as usual, also an attack.
 *
 * @param options.isService sets the file aside as READING first, until the service serves or puts it back
 * @returns for the log, what was not read; undefined if all was read, or if no service ran here
 */
export function loadState(
  dataDir: string,
  state: State,
  { bootId = machineBootId(), isService = false } = {},
): string | undefined {
  const [path, reading] = [NAME, READING].map(name => join(dataDir, name)) as [string, string]
  if (isService && existsSync(reading) && !existsSync(path))
    return 'the state is not read: the last start ended while it read it, for want of time, memory or power'
  if (!existsSync(path)) return isService && hasServedFrom(dataDir) ? NONE_SAVED : undefined
  let snapshot: Snapshot
  try {
    if (isService) renameSync(path, reading)
    snapshot = deserialize(readFileSync(isService ? reading : path)) as Snapshot
    if (snapshot.layout !== LAYOUT) return 'the state is of another version, and is not read'
    for (const [name, meter] of snapshot.meters) state.meters.set(name, meter)
  } catch (error) {
    return `the state is damaged (${systemErrorText(error)}), and is not read`
  }
  const isCurrent =
    bootId !== '' && snapshot.bootId === bootId && Math.abs(Date.now() - snapshot.savedAtMs) < OLD_MS
  if (!isCurrent) return 'the state is of before a reboot, or old: only usual rates are read of it'
  state.epoch = snapshot.epoch
  for (const [key, value] of snapshot.windows) state.windows.set(key, value)
  for (const [key, value] of snapshot.marks) state.marks.set(key, value)
  return undefined
}

/** Called when a start is told to end before it serves: the next one reads the state. */
export function putStateBack(dataDir: string): void {
  const reading = join(dataDir, READING)
  if (existsSync(reading)) renameSync(reading, join(dataDir, NAME))
}

/** Removes what a full disk left unfinished, too: a change of sites needs that space. */
export function removeSavedState(dataDir: string): void {
  for (const name of [NAME, READING, `${NAME}.new`])
    rmSync(join(dataDir, name), { force: true, recursive: true })
}

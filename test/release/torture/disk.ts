/** Data directories that a case fills, damages and deletes: what case 12 does to the embedded store. */

import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestService } from '../../harness/service.ts'
import type { Run } from './run.ts'

/** A directory on a small disk of its own; undefined if mounting is not allowed (it needs CAP_SYS_ADMIN). */
export function smallDisk(run: Run, bytes: number): string | undefined {
  const path = mkdtempSync(join(tmpdir(), 'powgate-disk-'))
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${bytes},mode=700`, 'powgate-torture', path], {
      stdio: 'ignore',
    })
  } catch {
    rmSync(path, { recursive: true })
    return undefined
  }
  run.defer(() => {
    execFileSync('umount', ['-l', path])
    rmSync(path, { recursive: true })
  })
  return path
}

export function remount(path: string, how: 'ro' | 'rw'): void {
  execFileSync('mount', ['-o', `remount,${how}`, path])
}

/** Fills all free space. @returns the file that fills it */
export function fill(path: string): string {
  const file = join(path, 'fill')
  for (let bytes = 2 ** 20; bytes >= 1; bytes = Math.floor(bytes / 4)) {
    for (;;) {
      try {
        writeFileSync(file, Buffer.alloc(bytes), { flag: 'a' })
      } catch {
        break
      }
    }
  }
  return file
}

/** How a start ended: '' if the service serves, or the lines that it printed at its end. */
export async function tryBoot(service: TestService): Promise<{ lines: string; code: number | null }> {
  const before = service.output.length
  try {
    await service.boot()
    return { lines: '', code: null }
  } catch (error) {
    const code = await service.end('SIGKILL')
    const lines = service.output.slice(before).trim()
    return { lines: lines === '' ? (error as Error).message : lines, code }
  }
}

/** A copy of a service's data, for repeated starts. */
export class Copy {
  readonly #of: string
  readonly #path: string

  constructor(run: Run, dataDir: string) {
    this.#of = dataDir
    this.#path = mkdtempSync(join(tmpdir(), 'powgate-copy-'))
    cpSync(dataDir, this.#path, { recursive: true })
    run.defer(() => rmSync(this.#path, { recursive: true, force: true }))
  }

  putBack(): void {
    rmSync(this.#of, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
    cpSync(this.#path, this.#of, { recursive: true })
  }
}

interface Wreck {
  readonly words: string
  /** Whether the service must not start. */
  readonly mustRefuse: boolean
  make(dataDir: string): void
}

/** Ways to truncate or replace a file. Without its sites or its secret, the service must not start. */
export function knownWrecks(): Wreck[] {
  const wreck = (file: string, words: string, act: (path: string) => void, mustRefuse: boolean): Wreck => {
    return { words: `${file} ${words}`, mustRefuse, make: dataDir => act(join(dataDir, file)) }
  }
  const ofFile = (file: string, isSites: boolean) => [
    wreck(file, 'cut to 0 bytes', path => truncateSync(path, 0), isSites),
    wreck(file, 'is gone', path => rmSync(path), isSites),
    wreck(file, 'is a directory', replaceByDirectory, isSites),
    wreck(file, 'is a text', path => writeFileSync(path, 'no such thing\n'.repeat(1000)), isSites),
    wreck(file, 'has a byte less in its middle', withoutMiddle, isSites),
  ]
  const secret = (words: string, text: string | Buffer) =>
    wreck('secret', `is ${words}`, path => writeFileSync(path, text), true)
  return [
    ...[...ofFile('sites.jsonl', true), ...ofFile('state', false)],
    ...[secret('empty', ''), secret('cut', 'abcdef'), secret('garbage', Buffer.alloc(64, 0xfe))],
  ]
}

function replaceByDirectory(path: string): void {
  rmSync(path, { recursive: true })
  mkdirSync(path)
}

/** The quotation mark after a name. */
function withoutMiddle(path: string): void {
  const bytes = readFileSync(path)
  const at = bytes.indexOf('"', Math.floor(bytes.length / 2))
  writeFileSync(path, Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + 1)]))
}

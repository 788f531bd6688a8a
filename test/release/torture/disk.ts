/** Data directories that a case fills, damages and deletes: what case 12 does to the embedded store. */

import { execFileSync } from 'node:child_process'
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
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
    rmSync(this.#of, { recursive: true, force: true })
    cpSync(this.#path, this.#of, { recursive: true })
  }
}

const PAGE = 4096

interface Wreck {
  readonly words: string
  /** Whether the service must not start. */
  readonly mustRefuse: boolean
  make(dataDir: string): void
}

export const SITES_FILE = join('sites', 'data.mdb')
export const STATE_FILE = join('state', 'data.mdb')

/** Ways to truncate or replace a file or folder. Without its sites or its secret, the service must not start. */
export function knownWrecks(): Wreck[] {
  const ofFile = (file: string, isSites: boolean): Wreck[] => {
    const wreck = (words: string, act: (path: string) => void, mustRefuse = isSites): Wreck => {
      return { words: `${file} ${words}`, mustRefuse, make: dataDir => act(join(dataDir, file)) }
    }
    const cut = (to: string, size: (bytes: number) => number, mustRefuse = isSites) =>
      wreck(`cut to ${to}`, path => truncateSync(path, Math.floor(size(statSync(path).size))), mustRefuse)
    return [
      cut('0 bytes', () => 0),
      cut('one page', () => PAGE),
      cut('two pages', () => 2 * PAGE),
      cut('half of it', bytes => bytes / 2),
      // The last page may be one that nothing refers to.
      cut('all but a page', bytes => bytes - PAGE, false),
      cut('all but a byte', bytes => bytes - 1, false),
      wreck('is gone', path => rmSync(path)),
      wreck('is a directory', replaceByDirectory),
      wreck('is a text', path => writeFileSync(path, 'no such thing\n'.repeat(1000))),
    ]
  }
  const ofFolder = (part: string, mustRefuse: boolean): Wreck[] => [
    {
      words: `${part} is gone`,
      mustRefuse,
      make: dataDir => rmSync(join(dataDir, part), { recursive: true }),
    },
    { words: `${part} is empty`, mustRefuse, make: dataDir => replaceByDirectory(join(dataDir, part)) },
  ]
  const secret = (words: string, text: string | Buffer): Wreck => {
    return {
      words: `secret is ${words}`,
      mustRefuse: true,
      make: dir => writeFileSync(join(dir, 'secret'), text),
    }
  }
  return [
    ...[...ofFile(SITES_FILE, true), ...ofFile(STATE_FILE, false)],
    ...[...ofFolder('sites', true), ...ofFolder('state', false)],
    ...[secret('empty', ''), secret('cut', 'abcdef'), secret('garbage', Buffer.alloc(64, 0xfe))],
  ]
}

function replaceByDirectory(path: string): void {
  rmSync(path, { recursive: true })
  mkdirSync(path)
}

/** One to four pages of random bytes, or as many wrong bytes in the first two pages. */
export function randomWreck({ random }: Run): Wreck {
  const file = random.pick([SITES_FILE, STATE_FILE])
  const isMeta = random.chance(0.4)
  const count = random.between(1, 4)
  const seed = random.fork()
  return {
    words: `${file}: ${count} ${isMeta ? 'wrong bytes in the first two pages' : 'pages of random bytes'}`,
    mustRefuse: false,
    make(dataDir) {
      const path = join(dataDir, file)
      const bytes = readFileSync(path)
      for (let done = 0; done < count; done++) {
        if (isMeta) bytes[seed.below(2) * PAGE + seed.below(168)]! ^= seed.between(1, 255)
        else seed.bytes(PAGE).copy(bytes, seed.below(bytes.length / PAGE) * PAGE)
      }
      writeFileSync(path, bytes)
    },
  }
}

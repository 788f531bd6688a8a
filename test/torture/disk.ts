/** Data directories that a case fills, damages and deletes: what case 12 does to the embedded store. */

import { execFileSync } from 'node:child_process'
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestService } from '../harness/service.ts'
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

/** Directories that are removed when the process ends; with retries, because a browser that was killed may still write to one. */

import { cpSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const dirs: string[] = []
process.once('exit', () => {
  for (const dir of dirs) rmSync(dir, { recursive: true, force: true, maxRetries: 10 })
})

export function temporaryDir(name: string): string {
  dirs.push(mkdtempSync(join(tmpdir(), `powgate-${name}-`)))
  return dirs.at(-1)!
}

const ROOT = new URL('../..', import.meta.url).pathname

/** A copy of what was built, which a test may change. */
export function copyOfBuild(): string {
  const dir = temporaryDir('build')
  for (const name of ['dist', 'package.json']) cpSync(join(ROOT, name), join(dir, name), { recursive: true })
  symlinkSync(join(ROOT, 'node_modules'), join(dir, 'node_modules'))
  return dir
}

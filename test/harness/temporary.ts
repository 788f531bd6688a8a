/** Directories of test files. */

import { cpSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after } from 'node:test'

export function temporaryDir(name: string): string {
  const dir = mkdtempSync(join(tmpdir(), `powgate-${name}-`))
  after(() => rmSync(dir, { recursive: true, force: true }))
  return dir
}

const ROOT = new URL('../..', import.meta.url).pathname

/** A copy of what was built, which a test may change. */
export function copyOfBuild(): string {
  const dir = temporaryDir('build')
  for (const name of ['dist', 'package.json']) cpSync(join(ROOT, name), join(dir, name), { recursive: true })
  symlinkSync(join(ROOT, 'node_modules'), join(dir, 'node_modules'))
  return dir
}

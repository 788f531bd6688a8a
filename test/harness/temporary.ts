/** Directories of test files. */

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after } from 'node:test'

/** A new directory, which is removed at the end of the test file. */
export function temporaryDir(name: string): string {
  const dir = mkdtempSync(join(tmpdir(), `powgate-${name}-`))
  after(() => rmSync(dir, { recursive: true, force: true }))
  return dir
}

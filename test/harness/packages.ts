/** The npm packages that one folder of tests needs, in the versions of its lock file. */

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Installs them, unless they are there. Throws AssertionError with npm's words if it fails. */
export function installNpmPackages(folder: string): void {
  const { dependencies } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  const installed = join(folder, 'node_modules/.package-lock.json')
  const packages = existsSync(installed) ? JSON.parse(readFileSync(installed, 'utf8')).packages : {}
  const isMissing = ([name, version]: [string, unknown]) =>
    packages[`node_modules/${name}`]?.version !== version
  if (!Object.entries(dependencies).some(isMissing)) return
  const args = ['ci', '--ignore-scripts', '--no-audit', '--no-fund']
  const { status, stderr } = spawnSync('npm', args, { cwd: folder, encoding: 'utf8' })
  assert.equal(status, 0, `npm ci in ${folder} failed: ${stderr}`)
}

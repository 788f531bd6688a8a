/** The npm packages that one folder of tests or benches needs, in the versions of its lock file. */

import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'

export function installNpmPackages(folder: string): void {
  alone(folder, 'npm ls >/dev/null 2>&1 || npm ci --ignore-scripts --no-audit --no-fund')
}

/**
 * Several test files share a folder and run at once; two commands of npm in it remove each other's files.
 *
 * @returns the last line of output
 */
function alone(folder: string, script: string, ...args: readonly string[]): string {
  const flock = spawnSync('flock', ['.', 'sh', '-c', script, ...args], { cwd: folder, encoding: 'utf8' })
  assert.equal(flock.status, 0, `in ${folder}: ${script} failed: ${flock.stderr}`)
  return flock.stdout.trim().split('\n').at(-1)!
}

/** Its package.json lists the frameworks and runtimes that the tests of client/ use. */
const FRAMEWORKS = new URL('../client/', import.meta.url).pathname

/** Where a framework or a runtime is installed. */
export const frameworkPath = (name: string): string => join(FRAMEWORKS, 'node_modules', name)

/** Installs the package of the folder `packed`, which npm builds first, into a project, with links to frameworks. @returns where it is */
export function installInto(project: string, packed: string, frameworks: readonly string[] = []): string {
  installNpmPackages(FRAMEWORKS)
  const { name } = JSON.parse(readFileSync(join(packed, 'package.json'), 'utf8'))
  const target = join(project, 'node_modules', name)
  mkdirSync(target, { recursive: true })
  const archive = join(target, alone(packed, 'npm pack --silent --pack-destination "$0"', target))
  execFileSync('tar', ['xzf', archive, '-C', target, '--strip-components=1'])
  rmSync(archive)
  for (const each of frameworks) symlinkSync(frameworkPath(each), join(project, 'node_modules', each))
  return target
}

/** The text of next.config.js for such a project: Next.js' bundler, Turbopack, follows links only below this root. */
export const NEXT_CONFIG = "export default { turbopack: { root: '/' } }"

const TSC = new URL('../../node_modules/typescript/bin/tsc', import.meta.url).pathname

/** What the TypeScript compiler says of a file under strict settings; empty if nothing. @param more options, between spaces */
export function typeErrors(folder: string, file: string, more: string): string {
  const options = '--noEmit --strict --target es2022 --module esnext --moduleResolution bundler'.split(' ')
  const args = [TSC, ...options, ...more.split(' '), file]
  const { stdout, stderr } = spawnSync(process.execPath, args, { cwd: folder, encoding: 'utf8' })
  return stdout + stderr
}

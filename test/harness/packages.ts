/** The npm packages that one folder of tests or benches needs, in the versions of its lock file. */

import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { isAlive } from './processes.ts'

const LOCK_POLL_MS = 200

export function installNpmPackages(folder: string): void {
  alone(folder, () => install(folder))
}

/** Packs the package of a folder, which npm builds first, and unpacks it into another. */
function unpackNpmPackage(folder: string, target: string): void {
  alone(folder, () => {
    const args = ['pack', '--silent', '--pack-destination', target]
    const { status, stdout, stderr } = spawnSync('npm', args, { cwd: folder, encoding: 'utf8' })
    assert.equal(status, 0, `npm pack in ${folder} failed: ${stderr}`)
    const archive = join(target, stdout.trim().split('\n').at(-1)!)
    execFileSync('tar', ['xzf', archive, '-C', target, '--strip-components=1'])
    rmSync(archive)
  })
}

/** Gives a project a package of this tree, packed, and links to some of what `peers` has. @returns where the package is */
export function installInto(folder: string, packed: string, peers: string, names: readonly string[]): string {
  installNpmPackages(peers)
  const { name } = JSON.parse(readFileSync(join(packed, 'package.json'), 'utf8'))
  const target = join(folder, 'node_modules', name)
  mkdirSync(target, { recursive: true })
  unpackNpmPackage(packed, target)
  for (const each of names) symlinkSync(join(peers, 'node_modules', each), join(folder, 'node_modules', each))
  return target
}

/** Next.js in such a project: its bundler follows links only below this root. */
export const TURBOPACK = "export default { turbopack: { root: '/' } }"

/** Several test files share a folder and run at once; two commands of npm in it remove each other's files. */
function alone(folder: string, work: () => void): void {
  const lock = join(tmpdir(), `powgate-npm${resolve(folder).replace(/\W+/g, '-')}`)
  while (!isLocked(lock)) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, LOCK_POLL_MS)
  try {
    work()
  } finally {
    rmSync(lock)
  }
}

/** Takes the lock, if nobody has it who still runs. */
function isLocked(lock: string): boolean {
  try {
    writeFileSync(lock, String(process.pid), { flag: 'wx' })
    return true
  } catch {
    const owner = ownerOf(lock)
    if (owner > 0 && !isAlive(owner)) rmSync(lock, { force: true })
    return false
  }
}

/** 0 if the lock is free by now, or its owner has not yet written its id. */
function ownerOf(lock: string): number {
  try {
    return Number(readFileSync(lock, 'utf8'))
  } catch {
    return 0
  }
}

function install(folder: string): void {
  const { dependencies } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  const installed = join(folder, 'node_modules/.package-lock.json')
  const packages = existsSync(installed) ? JSON.parse(readFileSync(installed, 'utf8')).packages : {}
  const isMissing = ([name, version]: [string, unknown]) =>
    packages[`node_modules/${name}`]?.version !== version
  if (!Object.entries(dependencies).some(isMissing)) return
  process.stderr.write(`Installing packages into ${folder} ...\n`)
  const args = ['ci', '--ignore-scripts', '--no-audit', '--no-fund']
  const { status, stderr } = spawnSync('npm', args, { cwd: folder, encoding: 'utf8' })
  assert.equal(status, 0, `npm ci in ${folder} failed: ${stderr}`)
}

const TSC = new URL('../../node_modules/typescript/bin/tsc', import.meta.url).pathname

/** What the compiler objects to in a file, in a project with strict settings. @param more options */
export function typeErrors(folder: string, file: string, more: string): string {
  const options = '--noEmit --strict --target es2022 --module esnext --moduleResolution bundler'.split(' ')
  const args = [TSC, ...options, ...more.split(' '), file]
  const { stdout, stderr } = spawnSync(process.execPath, args, { cwd: folder, encoding: 'utf8' })
  return stdout + stderr
}

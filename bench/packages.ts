/** Installs the packages that the benches compare with. They are no dependencies of the project. */

import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { tell } from '../test/harness/command-line.ts'

const FOLDER = new URL('./', import.meta.url)

/** Installs them into bench/ unless they are there, in the versions that bench/package.json names. */
export function installPeers(): void {
  const missing = Object.entries(wantedVersions()).filter(
    ([name, version]) => installedVersion(name) !== version,
  )
  if (missing.length === 0) return
  tell(`Installing ${missing.map(([name, version]) => `${name} ${version}`).join(', ')} into bench/ ...`)
  const { status, error, stderr } = spawnSync('npm', ['ci', '--no-audit', '--no-fund'], {
    cwd: fileURLToPath(FOLDER),
    encoding: 'utf8',
  })
  if (status !== 0) throw new Error(`npm ci in bench/ failed: ${error?.message ?? stderr}`)
}

/** @returns versions by package name */
export function wantedVersions(): Readonly<Record<string, string>> {
  return JSON.parse(readFileSync(new URL('package.json', FOLDER), 'utf8')).dependencies
}

function installedVersion(name: string): string | undefined {
  try {
    const manifest = readFileSync(new URL(`node_modules/${name}/package.json`, FOLDER), 'utf8')
    return JSON.parse(manifest).version
  } catch {
    return undefined
  }
}

/** Installs the packages that the benches compare with. They are no dependencies of the project. */

import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { installNpmPackages } from '../test/harness/packages.ts'

const FOLDER = new URL('./', import.meta.url)

/** Installs them into bench/ unless they are there, in the versions that bench/package.json names. */
export function installPeers(): void {
  installNpmPackages(fileURLToPath(FOLDER))
}

/** @returns versions by package name */
export function wantedVersions(): Readonly<Record<string, string>> {
  return JSON.parse(readFileSync(new URL('package.json', FOLDER), 'utf8')).dependencies
}

/**
 * Tells which build of uWebSockets.js is the HTTP server: a repack or a fork, because its author publishes no package.
 * native-binaries.sha256 (in sha256sum's format) records the known ones.
 */

import { createHash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'

export type ServerBuild = Readonly<ReturnType<typeof readBuild>>

export const UNKNOWN_BUILD = 'the binary of the HTTP server is none that powgate knows: run its tests on it'

export function serverBuild(): ServerBuild {
  try {
    return readBuild()
  } catch {
    // An upgrade may be replacing the package.
    return { name: 'unknown', version: '-', sha256: '-', isKnown: false }
  }
}

/** `isKnown`: the binary's hash is on record. The tests ran on the recorded ones for x64, and on none for arm64. */
function readBuild() {
  const { platform, arch, versions } = process
  const entry = import.meta.resolve('uWebSockets.js')
  const first = (...paths: string[]) => paths.map(path => new URL(path, entry)).find(existsSync)!
  const file = `uws_${platform}_${arch}_${versions.modules}.node`
  const { name, version } = JSON.parse(readFileSync(first('package.json', '../package.json'), 'utf8'))
  const sha256 = createHash('sha256')
    .update(readFileSync(first(file, `bin/${file}`)))
    .digest('hex')
  const recorded = readFileSync(new URL('native-binaries.sha256', import.meta.url), 'utf8')
  return { name, version, sha256, isKnown: recorded.includes(sha256) }
}

/** Describes the files as they are now; a running process may have loaded others. */
export function serverBuildText(): string {
  const { name, version, sha256, isKnown } = serverBuild()
  return `${name} ${version}, ${isKnown ? 'known' : 'unknown'} binary ${sha256.slice(0, 12)}`
}

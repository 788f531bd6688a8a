/**
 * Which build of uWebSockets.js is the HTTP server. Its author publishes no package, so this is a repack or a fork. The hash
 * of its binary tells whether the tests ran on it: native-binaries.sha256, in the form of sha256sum.
 */

import { createHash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'

export interface ServerBuild {
  /** Of the package. */
  readonly name: string
  readonly version: string
  /** Of the binary for this platform, hexadecimal. */
  readonly sha256: string
  /** Whether the tests of this version of powgate ran on it. */
  readonly isTested: boolean
}

let found: ServerBuild | undefined

export function serverBuild(): ServerBuild {
  try {
    found ??= look()
  } catch {
    // An upgrade may be replacing the package: /metrics must go on.
    return { name: 'unknown', version: '-', sha256: '-', isTested: false }
  }
  return found
}

function look(): ServerBuild {
  const { platform, arch, versions } = process
  const entry = import.meta.resolve('uWebSockets.js')
  const first = (...paths: string[]) => paths.map(path => new URL(path, entry)).find(existsSync)!
  const file = `uws_${platform}_${arch}_${versions.modules}.node`
  const { name, version } = JSON.parse(readFileSync(first('package.json', '../package.json'), 'utf8'))
  const sha256 = createHash('sha256')
    .update(readFileSync(first(file, `bin/${file}`)))
    .digest('hex')
  const tested = readFileSync(new URL('native-binaries.sha256', import.meta.url), 'utf8')
  return { name, version, sha256, isTested: tested.includes(sha256) }
}

export function serverBuildText(): string {
  const { name, version, sha256, isTested } = serverBuild()
  return `${name} ${version}, ${isTested ? 'tested' : 'not tested'} binary ${sha256.slice(0, 12)}`
}

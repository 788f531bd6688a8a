/**
 * Writes dist/THIRD_PARTY_NOTICES: the licenses of whatever is shipped besides powgate's own code. That is each package that
 * the lock file has for production (those in `src/packages/` are bundled into `dist/`), and what is inside the native binaries.
 */

import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

interface Package {
  readonly version: string
  readonly license?: string
}

interface Notice {
  readonly name: string
  readonly license: string
  readonly text: string
}

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8').trim()
const PACKAGES: Readonly<Record<string, { readonly dev?: true }>> = JSON.parse(
  read('package-lock.json'),
).packages

/** Inside the binary of uWebSockets.js, whose package does not say so. */
const INSIDE: readonly Notice[] = [
  ['uWebSockets.js, uWebSockets, uSockets', 'Apache-2.0', 'uwebsockets.txt'],
  ['BoringSSL', 'OpenSSL AND ISC', 'boringssl.txt'],
  ['lsquic, ls-qpack, ls-hpack', 'MIT', 'lsquic.txt'],
  ['xxHash', 'BSD-2-Clause', 'xxhash.txt'],
].map(([name, license, file]) => {
  return { name: `${name} (in the HTTP server)`, license: license!, text: read(`scripts/licenses/${file}`) }
})

/** Packages for other platforms are not installed, and have the license of those for this one. */
function noticeOf(path: string): Notice[] {
  if (!existsSync(join(ROOT, path))) return []
  // As installed: another build of the HTTP server may stand in its place.
  const { version, license = '' }: Package = JSON.parse(read(join(path, 'package.json')))
  const name = path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length)
  const files = readdirSync(join(ROOT, path)).filter(file => /^(licen[cs]e|copying|notice)/i.test(file))
  const text = files.map(file => read(join(path, file))).join('\n\n') || `License: ${license}`
  return [{ name: `${name} ${version}`, license, text }]
}

const shipped = Object.keys(PACKAGES).filter(path => path !== '' && !PACKAGES[path]!.dev)
const notices = [...INSIDE, ...shipped.flatMap(noticeOf)]
const line = '-'.repeat(80)
const parts = notices.map(({ name, license, text }) => `${line}\n${name}\n${license}\n\n${text}\n`)
const list = notices.map(({ name, license }) => `  ${name}: ${license}`)
const head = `powgate contains the following software of others.\n\n${list.join('\n')}\n`
writeFileSync(join(ROOT, 'dist/THIRD_PARTY_NOTICES'), [head, ...parts].join('\n'))

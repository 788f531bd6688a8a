/**
 * Valkey, on which the suites of the store and of the topologies run too. Debian 13 has it; for Debian 12 it is in
 * bookworm-backports, which is asked for this one package only, at the mirror that the machine uses already.
 */

import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const SOURCES = '/etc/apt/sources.list.d'
const SOURCES_LIST = '/etc/apt/sources.list'
const KEYRING = '/usr/share/keyrings/debian-archive-keyring.gpg'
/** Asked by Debian's packages before they start a service: the tests start their own, on other ports. */
const START_POLICY = '/usr/sbin/policy-rc.d'

export function installValkey(): void {
  if (spawnSync('valkey-server', ['--version']).status === 0) return
  const isDebian12 =
    existsSync('/etc/os-release') && /VERSION_CODENAME=bookworm/.test(readFileSync('/etc/os-release', 'utf8'))
  const isRoot = process.getuid?.() === 0
  if (isRoot && (install([]) || (isDebian12 && installFromBackports()))) return
  process.stderr.write(
    "The tests need valkey-server: install it, on Debian 12 with 'apt-get install -t bookworm-backports valkey-server'.\n",
  )
  process.exit(1)
}

/** The mirror of this machine's Debian 12; undefined on another system. */
export function mirror(): string | undefined {
  const files = existsSync(SOURCES) ? readdirSync(SOURCES).map(name => join(SOURCES, name)) : []
  for (const file of [...files, SOURCES_LIST].filter(existsSync)) {
    const text = readFileSync(file, 'utf8')
    const line = /^deb (?:\[[^\]]*\] )?(\S+) bookworm /m.exec(text)?.[1]
    if (line !== undefined) return line
    for (const stanza of text.split(/\n\s*\n/)) {
      if (/^Suites:.*\bbookworm(?:\s|$)/m.test(stanza)) {
        const uri = /^URIs: *(\S+)/m.exec(stanza)?.[1]
        if (uri !== undefined) return uri
      }
    }
  }
  return undefined
}

/** With lists and sources of its own, so that nothing else of the machine ever comes from there. */
function installFromBackports(): boolean {
  const uri = mirror()
  if (uri === undefined) return false
  const dir = mkdtempSync(join(tmpdir(), 'powgate-apt-'))
  chmodSync(dir, 0o755) // apt reads it as a user of its own
  try {
    for (const folder of ['sources', 'lists/partial']) mkdirSync(join(dir, folder), { recursive: true })
    if (existsSync(SOURCES)) cpSync(SOURCES, join(dir, 'sources'), { recursive: true })
    const source = `Types: deb\nURIs: ${uri}\nSuites: bookworm-backports\nComponents: main\nSigned-By: ${KEYRING}\n`
    writeFileSync(join(dir, 'sources', 'backports.sources'), source)
    const options = [`Dir::Etc::sourceparts=${dir}/sources`, `Dir::State::lists=${dir}/lists`].flatMap(
      option => ['-o', option],
    )
    return apt(...options, 'update', '-q') && install(options)
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
}

function install(options: readonly string[]): boolean {
  const isOurs = !existsSync(START_POLICY)
  if (isOurs) writeFileSync(START_POLICY, '#!/bin/sh\nexit 101\n', { mode: 0o755 })
  try {
    return apt(...options, 'install', '-q', '-y', '--no-install-recommends', 'valkey-server')
  } finally {
    if (isOurs) rmSync(START_POLICY)
  }
}

function apt(...args: string[]): boolean {
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
  return spawnSync('apt-get', args, { stdio: ['ignore', 'ignore', 'ignore'], env }).status === 0
}

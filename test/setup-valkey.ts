/**
 * Valkey, on which the suites of the store and of the topologies run too. Debian 13 has it; for Debian 12 it is in
 * bookworm-backports, which is asked for this one package only. Where it cannot be had the tests run on Redis alone.
 */

import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const SOURCES = '/etc/apt/sources.list.d'
const KEYRING = '/usr/share/keyrings/debian-archive-keyring.gpg'
/** Asked by Debian's packages before they start a service: the tests start their own, on other ports. */
const START_POLICY = '/usr/sbin/policy-rc.d'

export function offerValkey(): void {
  if (spawnSync('valkey-server', ['--version']).status === 0) return
  const isDebian12 =
    existsSync('/etc/os-release') && /VERSION_CODENAME=bookworm/.test(readFileSync('/etc/os-release', 'utf8'))
  const isRoot = process.getuid?.() === 0
  if (isRoot && (install([]) || (isDebian12 && installFromBackports()))) return
  process.stdout.write('valkey-server is not there, so the tests run on Redis alone.\n')
}

/** With lists and sources of its own, so that nothing else of the machine ever comes from there. */
function installFromBackports(): boolean {
  const dir = mkdtempSync(join(tmpdir(), 'powgate-apt-'))
  chmodSync(dir, 0o755) // apt reads it as a user of its own
  try {
    for (const folder of ['sources', 'lists/partial']) mkdirSync(join(dir, folder), { recursive: true })
    if (existsSync(SOURCES)) cpSync(SOURCES, join(dir, 'sources'), { recursive: true })
    const source = `Types: deb\nURIs: http://deb.debian.org/debian\nSuites: bookworm-backports\nComponents: main\nSigned-By: ${KEYRING}\n`
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

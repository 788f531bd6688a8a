/**
 * Debian systems in folders, made by debootstrap, and processes in namespaces of their own. No mount of these processes is seen
 * outside. All of them end when the process that started them ends, even if that one is killed. For root only.
 */

import { type ChildProcess, type SpawnOptions, spawn, spawnSync } from 'node:child_process'
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'

export const SOURCES = '/etc/apt/sources.list.d'
/** Where Debian's own entries stand; others' files may name the same release. */
const OWN_SOURCES = ['/etc/apt/sources.list', join(SOURCES, 'debian.sources')]
const AUTHORITIES = '/etc/ssl/certs/ca-certificates.crt'
/** Node.js needs the libraries, npm the authorities. */
const PACKAGES = ['ca-certificates', 'libatomic1', 'libstdc++6']
const NPM = 'npm@10'
/** Arguments of setpriv, which runs unshare: that ends with the process that started it, and kills the command that it has started. */
const ISOLATED = '--pdeathsig KILL unshare --mount --pid --fork --kill-child --mount-proc'.split(' ')

type Words = readonly string[]

/** @param namespaces options of unshare, besides those for mounts and processes */
export function startIsolated(command: Words, options: SpawnOptions, namespaces: Words = []): ChildProcess {
  return spawn('setpriv', [...ISOLATED, ...namespaces, '--', ...command], options)
}

export function runIsolated(...command: Words): string {
  return run('setpriv', ...ISOLATED, '--', ...command)
}

/** @throws with the end of the output if the command fails */
function run(program: string, ...args: Words): string {
  const { status, stdout, stderr, error } = spawnSync(program, args, { encoding: 'utf8', maxBuffer: 2 ** 27 })
  if (status === 0) return stdout
  const end = `${stdout}${stderr}`.slice(-4000)
  throw new Error(`${[program, ...args].join(' ')} ended with ${status}: ${error ?? ''}\n${end}`)
}

/** Makes a small system. It takes packages from where this machine does (a mirror has all releases), and trusts the same authorities. */
export function makeDebian(root: string, release: 'bookworm' | 'trixie'): void {
  const uri = mirror() ?? 'http://deb.debian.org/debian'
  const put = (path: string, text: string) => {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), text)
  }
  put('etc/dpkg/dpkg.cfg.d/unsafe', 'force-unsafe-io\n') // no file is worth waiting for the disk
  runIsolated('debootstrap', '--variant=minbase', `--include=${PACKAGES.join()}`, release, root, uri)
  for (const file of [AUTHORITIES, '/etc/hosts']) cpSync(file, join(root, file))
  runIsolated('chroot', root, 'apt-get', 'clean')
  put('etc/apt/apt.conf.d/99as-outside', run('apt-config', 'dump', 'Acquire')) // such as a proxy
  put('usr/local/etc/npmrc', `cafile=${AUTHORITIES}\nregistry=${run('npm', 'config', 'get', 'registry')}`)
}

/** Puts Node.js and npm into /usr/local, where Docker's official image of Node.js has them. Replaces another version. */
export function putNode(root: string, line: number): void {
  const prefix = join(root, 'usr/local')
  const name = `node-linux-${process.arch}`
  const node = join(prefix, 'bin/node')
  rmSync(node, { force: true }) // npm would leave another package's file alone
  run('npm', 'install', '--global', '--prefix', prefix, NPM, `${name}@${line}`)
  const folder = join(prefix, 'lib/node_modules', name)
  renameSync(join(folder, 'bin/node'), node) // in place of npm's link to it
  rmSync(folder, { recursive: true })
}

/** The mirror of this machine's Debian 12: of the first `deb` entry of its component main. undefined on another system. */
export function mirror(): string | undefined {
  const files = existsSync(SOURCES) ? readdirSync(SOURCES).map(name => join(SOURCES, name)) : []
  const stanzaOfMain = [/^Types:.*\bdeb(?:\s|$)/m, /^Suites:.*\bbookworm(?:\s|$)/m, /^Components:.*\bmain\b/m]
  for (const file of [...OWN_SOURCES, ...files].filter(existsSync)) {
    const text = readFileSync(file, 'utf8')
    const line = /^deb (?:\[[^\]]*\] )?(\S+) bookworm .*\bmain\b/m.exec(text)?.[1]
    if (line !== undefined) return line
    for (const stanza of text
      .split(/\n\s*\n/)
      .filter(text => stanzaOfMain.every(field => field.test(text)))) {
      const uri = /^URIs: *(\S+)/m.exec(stanza)?.[1]
      if (uri !== undefined) return uri
    }
  }
  return undefined
}

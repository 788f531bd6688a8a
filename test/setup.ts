/** The programs that tests need besides Node.js: installs them as root on Debian, else names them. */

import { spawnSync } from 'node:child_process'
import { chmodSync, cpSync, existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { mirror, SOURCES } from './harness/debian.ts'
import { OLD_LIBRARIES } from './harness/old-libraries.ts'
import { temporaryDir } from './harness/temporary.ts'
import { words } from './harness/values.ts'

/** Each is a command: `npm test`, `npm run test:rest`, `test:release`, `test:all`. */
export type Suite = 'quick' | 'rest' | 'release' | 'all'

/** Programs by their names, or files that a package brings; after `=` the package, where its name is another. */
const NEEDED = Object.entries({
  quick: words('redis-server chromium-headless-shell openssl curl ps=procps ss=iproute2'),
  rest: words(
    'chromium nginx haproxy promtool=prometheus apache2 caddy firefox-esr WebKitWebDriver=webkit2gtk-driver Xvfb=xvfb',
    'python3 /usr/lib/python3/dist-packages/flask/__init__.py=python3-flask php=php-cli ruby go=golang-go',
    ...Object.entries(OLD_LIBRARIES).map(([name, file]) => `${file}=libjs-${name}`),
  ),
  release: words(
    '/usr/share/mediawiki/index.php=mediawiki /usr/share/wordpress/wp-login.php=wordpress mariadbd=mariadb-server',
    // These have no program, but dpkg keeps a list of each package's files.
    ...words('php-mysql php-sqlite3 wordpress-theme-twentytwentythree').map(
      name => `/var/lib/dpkg/info/${name}.list=${name}`,
    ),
    '/usr/share/perl5/Captcha/reCAPTCHA.pm=libcaptcha-recaptcha-perl',
    '/usr/lib/ruby/vendor_ruby/recaptcha.rb=ruby-recaptcha',
  ),
  root: words('buildah debootstrap'), // files of release/ that only root can run
}).flatMap(([suite, all]) =>
  all.map(text => {
    const [program = '', name = program] = text.split('=')
    return { program, package: name, suite }
  }),
)

export const IS_ROOT = process.getuid?.() === 0

function isThere(program: string): boolean {
  if (program.startsWith('/')) return existsSync(program)
  return spawnSync('sh', ['-c', `command -v ${program}`], { stdio: 'ignore' }).status === 0
}

/** Debian's packages start no service if this program is there and exits with 101. The tests start their own, on other ports. */
const START_POLICY = '/usr/sbin/policy-rc.d'

/** Runs `install` while no package may start a service. */
function withoutStarting(install: () => boolean): boolean {
  if (existsSync(START_POLICY)) return install() // a policy of the machine's own, which stays
  writeFileSync(START_POLICY, '#!/bin/sh\nexit 101\n', { mode: 0o755 })
  try {
    return install()
  } finally {
    rmSync(START_POLICY)
  }
}

const ALL_NEEDS = ['quick', 'rest', 'release', ...(IS_ROOT ? ['root'] : [])]

/** Installs what the suite needs and is missing; ends the process where it cannot. */
export function installNeedsOf(suite: Suite): void {
  const suites = { quick: ['quick'], rest: ['quick', 'rest'], release: ALL_NEEDS, all: ALL_NEEDS }[suite]
  installMissing(NEEDED.filter(need => suites.includes(need.suite)))
  if (suite !== 'quick') installValkey()
}

/** Installs those of these programs of NEEDED that are missing. */
export function installPrograms(...programs: readonly string[]): void {
  const needs = NEEDED.filter(({ program }) => programs.includes(program))
  if (needs.length < programs.length) throw new Error(`NEEDED lacks one of ${programs.join(', ')}`)
  installMissing(needs)
}

function installMissing(needs: typeof NEEDED): void {
  const missing = needs.filter(({ program }) => !isThere(program)).map(need => need.package)
  if (missing.length === 0) return
  if (!IS_ROOT || !isThere('apt-get'))
    giveUp(`The tests need ${missing.join(', ')}: install with 'apt-get install ${missing.join(' ')}'.`)
  process.stdout.write(`Installing ${missing.join(', ')} ...\n`)
  if (!apt('update', '-q') || !aptInstall(missing))
    giveUp(`Could not install ${missing.join(', ')}: install it by hand, then run the tests again.`)
}

function giveUp(why: string): never {
  process.stderr.write(`${why}\n`)
  process.exit(1)
}

/** Waits for another program that may be installing. */
function apt(...args: readonly string[]): boolean {
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
  const patience = ['-o', 'DPkg::Lock::Timeout=300']
  return spawnSync('apt-get', [...patience, ...args], { stdio: 'inherit', env }).status === 0
}

function aptInstall(packages: readonly string[], options: readonly string[] = []): boolean {
  return withoutStarting(() => apt(...options, 'install', '-q', '-y', '--no-install-recommends', ...packages))
}

const VALKEY = 'valkey-server'

/** Debian 13 has Valkey. For Debian 12 it is in bookworm-backports. */
function installValkey(): void {
  if (isThere(VALKEY)) return
  if (IS_ROOT && (installFromBackports(VALKEY) || (apt('update', '-q') && aptInstall([VALKEY])))) return
  giveUp(
    `The tests need ${VALKEY}: install it, on Debian 12 with 'apt-get install -t bookworm-backports ${VALKEY}'.`,
  )
}

const KEYRING = '/usr/share/keyrings/debian-archive-keyring.gpg'

/** Asks a Debian 12's own mirror. apt's lists and sources are others than the machine's, so that nothing else ever comes from there. */
function installFromBackports(name: string): boolean {
  const uri = mirror()
  if (uri === undefined) return false
  const dir = temporaryDir('apt')
  chmodSync(dir, 0o755) // apt reads it as a user of its own
  for (const folder of ['sources', 'lists/partial']) mkdirSync(join(dir, folder), { recursive: true })
  if (existsSync(SOURCES)) cpSync(SOURCES, join(dir, 'sources'), { recursive: true })
  const source = `Types: deb\nURIs: ${uri}\nSuites: bookworm-backports\nComponents: main\nSigned-By: ${KEYRING}\n`
  writeFileSync(join(dir, 'sources', 'backports.sources'), source)
  const settings = [`Dir::Etc::sourceparts=${dir}/sources`, `Dir::State::lists=${dir}/lists`]
  const options = settings.flatMap(setting => ['-o', setting])
  return apt(...options, 'update', '-q') && aptInstall([name], options)
}

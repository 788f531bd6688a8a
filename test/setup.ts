/** What the tests need besides Node.js: installs it where it can (Debian, as root), else says what to install. */

import { spawnSync } from 'node:child_process'
import { existsSync, rmSync, writeFileSync } from 'node:fs'
import { installValkey } from './harness/valkey.ts'

/** `quick` is what `npm test` runs, `rest` what `npm run test:all` adds, as root also what only root can run. */
export type Suite = 'quick' | 'rest' | 'all'

const NEEDED = [
  { program: 'redis-server', package: 'redis-server', suite: 'quick' },
  { program: 'chromium', package: 'chromium', suite: 'quick' },
  { program: 'openssl', package: 'openssl', suite: 'quick' },
  { program: 'curl', package: 'curl', suite: 'quick' },
  { program: 'ps', package: 'procps', suite: 'quick' },
  { program: 'ss', package: 'iproute2', suite: 'quick' },
  { program: 'nginx', package: 'nginx', suite: 'rest' },
  { program: 'haproxy', package: 'haproxy', suite: 'rest' },
  { program: 'apache2', package: 'apache2', suite: 'rest' },
  { program: 'caddy', package: 'caddy', suite: 'rest' },
  { program: 'firefox-esr', package: 'firefox-esr', suite: 'rest' },
  { program: 'WebKitWebDriver', package: 'webkit2gtk-driver', suite: 'rest' },
  { program: 'Xvfb', package: 'xvfb', suite: 'rest' },
  { program: 'faketime', package: 'faketime', suite: 'rest' },
  { program: 'python3', package: 'python3', suite: 'rest' },
  { program: 'php', package: 'php-cli', suite: 'rest' },
  { program: 'ruby', package: 'ruby', suite: 'rest' },
  { program: 'go', package: 'golang-go', suite: 'rest' },
  { program: 'buildah', package: 'buildah', suite: 'root' },
  { program: 'debootstrap', package: 'debootstrap', suite: 'root' },
]

export const IS_ROOT = process.getuid?.() === 0

function isThere(program: string): boolean {
  return spawnSync('sh', ['-c', `command -v ${program}`], { stdio: 'ignore' }).status === 0
}

/** Asked by Debian's packages before they start a service: the tests start their own, on other ports. */
const START_POLICY = '/usr/sbin/policy-rc.d'

/** Runs `install` while no package may start a service. */
function withoutStarting(install: () => boolean): boolean {
  if (existsSync(START_POLICY)) return install()
  writeFileSync(START_POLICY, '#!/bin/sh\nexit 101\n', { mode: 0o755 })
  try {
    return install()
  } finally {
    rmSync(START_POLICY)
  }
}

/** Installs what the suite needs and is missing; ends the process where it cannot. */
export function install(suite: Suite): void {
  const suites = suite === 'quick' ? ['quick'] : ['quick', 'rest', ...(IS_ROOT ? ['root'] : [])]
  installPrograms(...NEEDED.filter(need => suites.includes(need.suite)).map(need => need.program))
  if (suite !== 'quick') installValkey()
}

/** Installs those that are missing. */
export function installPrograms(...programs: readonly string[]): void {
  const missing = NEEDED.filter(({ program }) => programs.includes(program) && !isThere(program))
  if (missing.length > 0) installPackages(missing.map(need => need.package))
}

function installPackages(missing: readonly string[]): void {
  if (!IS_ROOT || !isThere('apt-get')) {
    process.stderr.write(
      `The tests need ${missing.join(', ')}: install with 'apt-get install ${missing.join(' ')}'.\n`,
    )
    process.exit(1)
  }
  process.stdout.write(`Installing ${missing.join(', ')} ...\n`)
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
  // Another program may be installing.
  const patience = ['-o', 'DPkg::Lock::Timeout=300']
  const apt = (...args: string[]) =>
    spawnSync('apt-get', [...patience, ...args], { stdio: 'inherit', env }).status === 0
  const install = () => apt('install', '-q', '-y', '--no-install-recommends', ...missing)
  if (!apt('update', '-q') || !withoutStarting(install)) {
    process.stderr.write(
      `Could not install ${missing.join(', ')}: install it by hand, then run the tests again.\n`,
    )
    process.exit(1)
  }
}

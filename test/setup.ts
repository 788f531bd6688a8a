/** What the tests need besides Node.js: installs it where it can (Debian, as root), else says what to install. */

import { spawnSync } from 'node:child_process'
import { existsSync, rmSync, writeFileSync } from 'node:fs'

const NEEDED = [
  { program: 'redis-server', package: 'redis-server' },
  { program: 'openssl', package: 'openssl' },
  { program: 'curl', package: 'curl' },
  { program: 'ps', package: 'procps' },
  { program: 'ss', package: 'iproute2' },
  { program: 'chromium', package: 'chromium' },
  { program: 'nginx', package: 'nginx' },
  { program: 'haproxy', package: 'haproxy' },
  { program: 'faketime', package: 'faketime' },
]

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

const missing = NEEDED.filter(({ program }) => !isThere(program)).map(need => need.package)
if (missing.length > 0) {
  const isRoot = process.getuid?.() === 0
  if (!isRoot || !isThere('apt-get')) {
    process.stderr.write(
      `The tests need ${missing.join(', ')}: install with 'apt-get install ${missing.join(' ')}'.\n`,
    )
    process.exit(1)
  }
  process.stdout.write(`Installing ${missing.join(', ')} ...\n`)
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
  const apt = (...args: string[]) => spawnSync('apt-get', args, { stdio: 'inherit', env }).status === 0
  const install = () => apt('install', '-q', '-y', '--no-install-recommends', ...missing)
  if (!apt('update', '-q') || !withoutStarting(install)) {
    process.stderr.write(
      `Could not install ${missing.join(', ')}: install it by hand, then run the tests again.\n`,
    )
    process.exit(1)
  }
}

const { installValkey } = await import('./setup-valkey.ts')
installValkey()

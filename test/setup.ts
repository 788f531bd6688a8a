/** What the tests need besides Node.js: installs it where it can (Debian, as root), else says what to install. */

import { spawnSync } from 'node:child_process'

const NEEDED = [
  { program: 'redis-server', package: 'redis-server' },
  { program: 'ps', package: 'procps' },
  { program: 'ss', package: 'iproute2' },
  { program: 'chromium', package: 'chromium' },
]

function isThere(program: string): boolean {
  return spawnSync('sh', ['-c', `command -v ${program}`], { stdio: 'ignore' }).status === 0
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
  if (!apt('update', '-q') || !apt('install', '-q', '-y', '--no-install-recommends', ...missing)) {
    process.stderr.write(
      `Could not install ${missing.join(', ')}: install it by hand, then run the tests again.\n`,
    )
    process.exit(1)
  }
}

const { offerValkey } = await import('./setup-valkey.ts')
offerValkey()

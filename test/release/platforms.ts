/**
 * `node --import tsx test/release/platforms.ts [--node 22,24] [PATH...]`, for root, and the end of `npm run test:release`: the
 * quick suite, or the test files and folders that are named, on another system where nothing is installed: `npm ci && npm test`
 * in a new Debian 13. Uncommitted files are tested too.
 */

import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { makeDebian, putNode, runIsolated, startIsolated } from '../harness/debian.ts'
import { IS_ROOT, installPrograms } from '../setup.ts'

const ROOT = new URL('../..', import.meta.url).pathname
/** Installs another HTTP server than the lock file names, as docs/reference/platforms.md says, by the line of Node.js. */
const SERVER: Readonly<Record<number, string>> = {
  24: " && npm install --no-save 'uWebSockets.js@npm:@btc-vision/uwebsockets.js@20.57.0'",
}
/** Installs the programs of the tests: `npm test` does so and builds, but is to be quick where files are named. */
const INSTALL = `node --import tsx --input-type=module -e "(await import('./test/setup.ts')).installNeedsOf('quick')"`
/** @param $1 the new root @param $2 a script. Runs in a mount namespace of its own: outside, and to `rmSync`, no mount is there. */
const ENTER = `set -e
root=$1
mount --rbind /dev "$root/dev"
mount --rbind /sys "$root/sys"
mount -t proc proc "$root/proc"
exec chroot "$root" /usr/bin/env -i HOME=/root PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \\
  NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt bash -c "cd /powgate && $2"`

const { values, positionals } = parseArgs({
  options: { node: { type: 'string', default: '22' } },
  allowPositionals: true,
})
if (!IS_ROOT) {
  process.stdout.write('Left to root: test/release/platforms.ts\n')
  process.exit()
}
installPrograms('debootstrap')
const root = mkdtempSync(join(tmpdir(), 'powgate-debian-13-'))
let running: ChildProcess | undefined
process.once('exit', () => {
  running?.kill('SIGKILL')
  rmSync(root, { recursive: true, force: true, maxRetries: 20 }) // its processes end in a moment
})
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))

makeDebian(root, 'trixie')
const copy = `git ls-files -z --cached --others --exclude-standard | tar --null -T - -cf - | tar -xf - -C "$2"`
runIsolated('bash', '-ec', `cd "$1"; mkdir "$2"; ${copy}`, 'copy', ROOT, join(root, 'powgate'))
const some = `${INSTALL} && npm run -s build && npm test -- ${positionals.join(' ')}`
const results: string[] = []
for (const line of values.node.split(',').map(Number)) {
  putNode(root, line)
  // With the copy of the line before, of which `npm ci` removes all packages, also the server that no lock file names.
  const script = `npm ci${SERVER[line] ?? ''} && ${positionals.length === 0 ? 'npm test' : some}`
  running = startIsolated(['bash', '-c', ENTER, 'enter', root, script], { stdio: 'inherit' })
  const [code] = await once(running, 'exit')
  if (code !== 0) process.exitCode = 1
  const versions = runIsolated('chroot', root, 'sh', '-c', 'cat /etc/debian_version; node --version')
  results.push(`Debian ${versions.trim().replace('\n', ', Node.js ')}: ${code === 0 ? 'passed' : 'FAILED'}`)
}
process.stdout.write(`${results.join('\n')}\n`)

/**
 * The container: built from the Dockerfile, then started as `docker run --read-only --cap-drop ALL --security-opt
 * no-new-privileges -v powgate:/data` starts it. As there need be no container engine, buildah builds, and the kernel's
 * namespaces hold the container. An engine's seccomp profile, cgroups and bridged network are missing. As there need be no
 * registry of images either, the base is made here: Debian 12 with Node.js 22 and npm, or what container-24.test.ts says. The
 * image is built, and its container started, while this file loads. All tests share the container, which the last test stops.
 */

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { hash } from 'node:crypto'
import { once } from 'node:events'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { noteSecret, noteText } from '../../harness/canaries.ts'
import { makeDebian, putNode, runIsolated, startIsolated } from '../../harness/debian.ts'
import { eventually, within } from '../../harness/eventually.ts'
import { temporaryDir } from '../../harness/temporary.ts'
import { installPrograms } from '../../setup.ts'

const ROOT = new URL('../../..', import.meta.url).pathname
const NODE = Number(process.env.TEST_NODE ?? 22)
const { dependencies } = JSON.parse(fs.readFileSync(join(ROOT, 'package.json'), 'utf8'))
/** Node.js 24 needs a newer C library and another build of the HTTP server, as docs/reference/platforms.md says. */
const RELEASE = NODE === 24 ? 'trixie' : 'bookworm'
const SERVER: string = NODE === 24 ? 'npm:@btc-vision/uwebsockets.js@20.57.0' : dependencies['uWebSockets.js']
const NODE_IMAGE = `localhost/node:${NODE}-${RELEASE}-slim`
const IMAGE = 'localhost/powgate:test'
/** Made anew if what makes it changes, and else kept from run to run: to make it takes longer than all else. */
const RECIPE = fs.readFileSync(join(ROOT, 'test/harness/debian.ts'), 'utf8') + makeBase
const BASE = join(tmpdir(), `powgate-container-base-${NODE}-${hash('sha256', RECIPE).slice(0, 8)}`)
const OWN_MB_MAX = 90 // what the image adds to its base
const START_MS_MAX = 60_000
const STOP_MS_MAX = 10_000 // `docker stop` kills what has not ended by then
/** What a container sees: its root, of which only /data may be written to, and no other mount but /proc and /dev. */
const START = `set -e
root=$1 data=$2
shift 2
mount --bind "$root" "$root" # a mount can become the root
mount --bind "$data" "$root/data"
mount --bind /dev "$root/dev"
mount -o remount,bind,ro "$root/dev"
mount -t proc proc "$root/proc"
mount -o remount,bind,ro "$root" # not the mounts in it
ip link set lo up
cd "$root"
pivot_root . . # puts the old root on top of the new one
umount -l .    # and takes it away
exec "$@"`
const WITHOUT_RIGHTS = '--clear-groups --bounding-set=-all --inh-caps=-all --no-new-privs'.split(' ')

const dir = temporaryDir('container')
const [storage, data] = [join(dir, 'storage'), join(dir, 'data')]

/** @param store the folder of an image store */
function buildah(store: string, ...args: readonly string[]): string {
  const places = [`--root=${join(store, 'root')}`, `--runroot=${join(store, 'run')}`]
  return runIsolated('buildah', ...places, '--storage-driver=vfs', ...args).trim()
}

function build(store: string, tag: string, context: string, ...options: readonly string[]): number {
  const startedAtMs = performance.now()
  // In another format the health check would be dropped.
  const usual = ['--format', 'docker', '--isolation', 'chroot', '--pull=false']
  buildah(store, 'build', ...usual, '--tag', tag, ...options, context)
  return (performance.now() - startedAtMs) / 1000
}

function makeBase(): void {
  const newStore = join(dir, 'new-store')
  const context = join(dir, 'context')
  const root = join(dir, 'base')
  fs.mkdirSync(newStore, { mode: 0o700 })
  fs.mkdirSync(context)
  makeDebian(root, RELEASE)
  putNode(root, NODE)
  runIsolated('tar', '-C', root, '--exclude=./dev/*', '-cf', join(context, 'base.tar'), '.')
  const path = 'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
  fs.writeFileSync(join(context, 'Dockerfile'), `FROM scratch\nADD base.tar /\nENV ${path}\n`)
  build(newStore, NODE_IMAGE, context)
  fs.renameSync(newStore, BASE) // only once it is whole
}

installPrograms('buildah', 'debootstrap')
if (!fs.existsSync(BASE)) makeBase()
assert.equal(fs.statSync(BASE).uid, 0, `${BASE} is somebody else's`)
runIsolated('cp', '-a', BASE, storage)
const UWS = NODE === 24 ? SERVER : '' // empty: the server of the lock file
const args = [`NODE_IMAGE=${NODE_IMAGE}`, `UWS=${UWS}`].flatMap(arg => ['--build-arg', arg])
const buildSeconds = build(storage, IMAGE, ROOT, ...args)
const inspected = (name: string) => JSON.parse(buildah(storage, 'inspect', '--type', 'image', name))
const image = inspected(IMAGE).Docker.config
const rootfs = buildah(storage, 'mount', buildah(storage, 'from', IMAGE))
// As an engine makes an empty volume: with the owner and the rights of the image's folder.
runIsolated('cp', '-a', join(rootfs, 'data'), data)

const [uid, gid] = image.User.split(':')
const environment = ['env', '-i', '-C', image.WorkingDir, ...image.Env, 'HOME=/']
const asUser = ['setpriv', '--reuid', uid, '--regid', gid, ...WITHOUT_RIGHTS, ...environment]
const command = ['bash', '-c', START, 'start', rootfs, data, ...asUser, ...image.Entrypoint, ...image.Cmd]
const service = startIsolated(command, { stdio: 'pipe' }, ['--net', '--ipc', '--uts'])
let stdout = ''
let stderr = ''
service.stdout!.setEncoding('utf8').on('data', (text: string) => (stdout += text))
service.stderr!.setEncoding('utf8').on('data', (text: string) => (stderr += text))
service.once('close', () => noteText('output', `${stdout}\n${stderr}`))
after(async () => {
  const gone = service.exitCode === null ? once(service, 'close') : undefined
  service.kill('SIGKILL') // and the kernel all processes in its namespaces
  await gone
})
const isListening = () => stdout.includes('powgate listens') || service.exitCode !== null
await eventually(START_MS_MAX, () => `the service listens: ${stdout}${stderr}`, isListening)
assert.equal(service.exitCode, null, stderr)
/** The id of the container's first process, as it is seen from outside. */
const pid = Number(fs.readFileSync(`/proc/${service.pid}/task/${service.pid}/children`, 'utf8'))
const procFile = (name: string) => fs.readFileSync(`/proc/${pid}/${name}`, 'utf8')

/** As `docker exec` runs a command. */
function inside(...command: readonly string[]): string {
  const args = ['--target', String(pid), '--mount', '--pid', '--net', '--ipc', ...asUser, ...command]
  const ended = spawnSync('nsenter', args, { encoding: 'utf8', timeout: START_MS_MAX, killSignal: 'SIGKILL' })
  assert.equal(ended.status, 0, `${command.join(' ')}: ${ended.stdout}${ended.stderr}`)
  return ended.stdout
}

const powgate = (...args: readonly string[]) => JSON.parse(inside(...image.Entrypoint, ...args, '--json'))

test('the image is small, and holds nothing that installs or that its user may write', context => {
  const layersOf = (name: string): { size: number }[] => JSON.parse(inspected(name).Manifest).layers
  const megabytes = (layers: { size: number }[]) => layers.reduce((sum, { size }) => sum + size, 0) / 1e6
  const all = layersOf(IMAGE)
  const own = megabytes(all.slice(layersOf(NODE_IMAGE).length))
  const sizes = `${megabytes(all).toFixed(0)} MB, of which ${own.toFixed(1)} MB are not the base's`
  context.diagnostic(`image: ${sizes}, built in ${buildSeconds.toFixed(1)} s`)
  assert.ok(own > 1 && own <= OWN_MB_MAX, sizes)
  assert.deepEqual(fs.readdirSync(join(rootfs, 'usr/local/bin')), ['node'])
  const writable = '( -perm /022 -o ! -uid 0 ) ! -type l'.split(' ')
  assert.equal(runIsolated('find', join(rootfs, 'app'), ...writable), '')
})

test('the container runs as user 1000 without capabilities, writes to /data alone, and listens on all addresses', () => {
  for (const line of ['Uid:(\\s+1000){4}', 'Gid:(\\s+1000){4}', 'Groups:\\s*', 'NoNewPrivs:\\s+1'])
    assert.match(procFile('status'), new RegExp(`^${line}$`, 'm'))
  for (const set of ['CapPrm', 'CapEff', 'CapBnd', 'CapAmb'])
    assert.match(procFile('status'), new RegExp(`^${set}:\\s+0+$`, 'm'))
  assert.match(procFile('status'), /^NSpid:.*\s1$/m) // to the service it is process 1
  const mounts = procFile('mountinfo').matchAll(/^(?:\S+ ){4}(\S+) (?:\S+,)?rw\b/gm)
  assert.deepEqual(Array.from(mounts, ([, place]) => place).sort(), ['/data', '/proc'])
  assert.deepEqual([Object.keys(image.Volumes), Object.keys(image.ExposedPorts)], [['/data'], ['8080/tcp']])
  assert.match(procFile('net/tcp'), /: 00000000:1F90 \S+ 0A /) // 0.0.0.0:8080 in state 0A, listening
})

test('the image has licenses, its own and those of others, and names its HTTP server', () => {
  const textOf = (file: string) => fs.readFileSync(join(rootfs, 'app', file), 'utf8')
  assert.match(textOf('LICENSE'), /MIT/)
  assert.match(textOf('dist/THIRD_PARTY_NOTICES'), /BoringSSL/)
  const [, name, version] = /^npm:(.+)@(.+)$/.exec(SERVER)!
  const known = NODE === 24 ? '' : 'known' // its hash is in src/native-binaries.sha256
  const line = `\nHTTP server: ${name} ${version}, ${known}`
  assert.ok(`\n${inside(...image.Entrypoint, '--version')}`.includes(line), line)
})

test('a site is made inside, a visitor passes and the token is redeemed; the health check is content', () => {
  const { siteKey, apiKey } = powgate('site', 'create', '--name', 'shop')
  noteSecret('api key', apiKey)
  const { verification, redemption } = powgate('try', '--site-key', siteKey, '--api-key', apiKey)
  assert.deepEqual([verification.answer.passed, redemption.answer.success], [true, true])
  const [kind, ...check] = image.Healthcheck.Test
  assert.equal(kind, 'CMD')
  inside(...check)
})

test('the signal that stops a container ends the service in time, with 0', async context => {
  const startedAtMs = performance.now()
  const gone = once(service, 'exit')
  process.kill(pid, image.StopSignal)
  const [code] = await within(STOP_MS_MAX, gone, () => `the end:\n${stdout}${stderr}`)
  context.diagnostic(`stopped in ${((performance.now() - startedAtMs) / 1000).toFixed(1)} s`)
  assert.equal(code, 0)
  assert.match(stderr, /^\nFirst start: [^{]+$/, 'the hint of a first start, and no line of JSON')
})

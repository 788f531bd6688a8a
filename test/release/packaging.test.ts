/** powgate as an installed package: packed once, installed as a global command, and run from a folder that is not its own. */

import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { eventually } from '../harness/eventually.ts'
import { call } from '../harness/http.ts'
import { freePort } from '../harness/ports.ts'
import { endProcess, leftovers } from '../harness/processes.ts'
import { temporaryDir } from '../harness/temporary.ts'
import { words } from '../harness/values.ts'

const run = promisify(execFile)
const ROOT = new URL('../..', import.meta.url).pathname
const dir = temporaryDir('packaging')
const elsewhere = join(dir, 'elsewhere')
const installed = join(dir, 'installed')
const program = join(dir, 'prefix/bin/powgate')

/** @param env all that it sees besides PATH and HOME */
function environment(env: Record<string, string>): NodeJS.ProcessEnv {
  const { PATH, HOME } = process.env
  return { PATH, HOME, HOST: '127.0.0.1', POWGATE_WORKERS: '2', POWGATE_DRAIN_SECONDS: '1', ...env }
}

async function untilServing(env: Record<string, string>) {
  const options = { cwd: elsewhere, env: environment(env) }
  const child = spawn(program, ['serve'], { ...options, stdio: ['ignore', 'pipe', 'pipe'] })
  leftovers.add({ stop: () => endProcess(child, 'SIGKILL') })
  let text = ''
  await new Promise<void>((resolve, reject) => {
    const take = (chunk: Buffer) => {
      text += chunk
      if (text.includes('powgate listens')) resolve()
    }
    child.stdout.on('data', take)
    child.stderr.on('data', take)
    child.once('exit', code => reject(new Error(`it ended with ${code}:\n${text}`)))
  })
  const end = () => endProcess(child).then(() => child.exitCode)
  return { child, output: () => text, end }
}

for (const made of [elsewhere, installed]) mkdirSync(made)
// A copy of what the test command has built: packing in the tree would build it anew while other tests use it.
const clone = join(dir, 'clone')
for (const name of ['dist', 'docs', 'package.json', 'package-lock.json', 'README.md', 'LICENSE'])
  cpSync(join(ROOT, name), join(clone, name), { recursive: true })
await run('npm', ['run', '-s', 'shrinkwrap'], { cwd: clone })
const { stdout } = await run('npm', ['pack', '--ignore-scripts', '--json', '--pack-destination', dir], {
  cwd: clone,
})
const [{ filename, files }] = JSON.parse(stdout)
const paths = (files as { path: string }[]).map(({ path }) => path)
const archive = join(dir, filename)
const unpack = () => run('tar', ['xzf', archive, '-C', installed, '--strip-components=1'])
await unpack()
const quiet = ['--no-audit', '--no-fund']
const { stderr: warnings } = await run('npm', ['ci', '--omit=dev', ...quiet], { cwd: installed })
const linking = { ...process.env, npm_config_prefix: join(dir, 'prefix') }
await run('npm', ['link', ...quiet], { cwd: installed, env: linking })

test('the package installs the versions of the lock file, with binaries for this Node.js', () => {
  assert.doesNotMatch(warnings, /EBADENGINE/)
  type Package = { version: string; dev?: true; optional?: true }
  const packagesOf = (path: string): [path: string, Package][] =>
    Object.entries(JSON.parse(readFileSync(path, 'utf8')).packages)
  const namesOf = (packages: [string, Package][]) =>
    packages.map(([path, { version }]) => `${path} ${version}`)
  const found = packagesOf(join(installed, 'node_modules/.package-lock.json'))
  const isFound = (path: string) => found.some(([name]) => name === path)
  const pinned = packagesOf(join(ROOT, 'package-lock.json')).filter(
    ([path, { dev, optional }]) => path !== '' && !dev && (!optional || isFound(path)),
  )
  assert.deepEqual(namesOf(found).sort(), namesOf(pinned).sort())
})

test('the package holds the build, and nothing of tests, benches or sources', () => {
  for (const needed of words(
    'dist/main.js dist/cli/main.js dist/packages/ajv.js dist/packages/ioredis.js dist/packages/pino.js dist/packages/typebox.js',
    'dist/store/redis/lua/batch.lua npm-shrinkwrap.json README.md docs/reference/http-api.md LICENSE dist/THIRD_PARTY_NOTICES',
  ))
    assert.ok(paths.includes(needed), needed)
  for (const path of paths.filter(path => path.startsWith('dist/packages/')))
    assert.doesNotMatch(readFileSync(join(installed, path), 'utf8'), /^(im|ex)port .*from "(?!node:)/m, path)
  const strange = paths.filter(
    path => !/^(dist\/|docs\/|[A-Z]+\.md$|LICENSE$|package\.json$|npm-shrinkwrap\.json$)/.test(path),
  )
  assert.deepEqual(strange, [])
})

test('notices and bill of materials name all packages that are shipped', async () => {
  const notices = readFileSync(join(installed, 'dist/THIRD_PARTY_NOTICES'), 'utf8')
  const sbom = ['sbom', '--omit=dev', '--package-lock-only', '--sbom-format=cyclonedx']
  const { stdout } = await run('npm', sbom, { cwd: installed })
  const { components } = JSON.parse(stdout) as { components: { name: string; version: string }[] }
  assert.ok(components.length > 20, stdout)
  // Packages for other platforms are not here, and have the notice of those for this one.
  const isHere = ({ name }: { name: string }) => existsSync(join(installed, 'node_modules', name))
  for (const { name, version } of components.filter(isHere))
    assert.ok(notices.includes(`\n${name} ${version}\n`), `${name} ${version} has no notice`)
  const names = components.map(({ name }) => name)
  for (const name of ['typebox', 'uWebSockets.js']) assert.ok(names.includes(name), name)
  for (const inside of ['BoringSSL', 'lsquic', 'xxHash', 'µWebSockets.js™', 'Apache License\n'])
    assert.ok(notices.includes(inside), inside)
})

test('unpacked again over itself, as an upgrade is: serve, check, site create and try work together; SIGTERM ends it with 0', async () => {
  await unpack()
  const port = String(await freePort())
  const env = { PORT: port, POWGATE_DATA_DIR: join(dir, 'data') }
  const service = await untilServing(env)
  const options = { cwd: elsewhere, env: environment(env) }
  const { stdout } = await run(program, ['site', 'create', '--name', 'shop', '--json'], options)
  const { siteKey, apiKey } = JSON.parse(stdout)
  const check = await run(program, ['check'], options)
  assert.match(check.stdout, /^ {2}scripts +run: /m)
  const url = `http://127.0.0.1:${port}`
  const visit = ['try', '--url', url, '--site-key', siteKey, '--api-key', apiKey, '--json']
  const trial = await run(program, visit, options)
  assert.equal(JSON.parse(trial.stdout).redemption.answer.success, true)
  assert.equal((await call(`${url}/widget.js`)).status, 200)
  assert.equal(await service.end(), 0)
  assert.ok(!existsSync(join(elsewhere, 'data')), 'nothing was written where it was started')
})

test('a replaced HTTP server shows in metrics from the next rolling restart on; check says that a missing one cannot be loaded', async () => {
  const [port, adminPort] = [String(await freePort()), String(await freePort())]
  const env = { PORT: port, POWGATE_ADMIN_PORT: adminPort, POWGATE_DATA_DIR: join(dir, 'other') }
  const binary = join(
    installed,
    `node_modules/uWebSockets.js/dist/bin/uws_${process.platform}_${process.arch}_${process.versions.modules}.node`,
  )
  const tested = readFileSync(binary)
  const service = await untilServing(env)
  /** Whether powgate knows the HTTP server that its workers have loaded. */
  const isKnown = async () =>
    /powgate_server_build_info\{.*known="(\w+)"\} 1/.exec(
      (await call(`http://127.0.0.1:${adminPort}/metrics`)).text,
    )?.[1]
  try {
    rmSync(binary) // writing into it would change what workers have mapped
    const { stderr } = await run(program, ['check'], { env: environment(env) }).catch(error => error)
    assert.match(stderr, /^the HTTP server cannot be loaded; run npm ci to restore it: /m)
    writeFileSync(binary, Buffer.concat([tested, Buffer.from('0')])) // with a byte more it still loads
    assert.equal(await isKnown(), 'true')
    service.child.kill('SIGHUP')
    await eventually(60_000, 'all workers are new', async () => /all workers are new/.test(service.output()))
    assert.equal(await isKnown(), 'false')
    assert.match(service.output(), /none that powgate knows/)
    assert.equal(await service.end(), 0)
  } finally {
    writeFileSync(binary, tested)
  }
})

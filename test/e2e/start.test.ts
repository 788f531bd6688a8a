/** Start and stop: the messages and exit codes that an operator sees. No request is lost, and no process remains. */

import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { constants, hostname } from 'node:os'
import { join, resolve } from 'node:path'
import { afterEach, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { DEMO_SITE_KEYS } from '../../src/demo/site.ts'
import { readFirstKeys } from '../../src/sites/service-files.ts'
import { loadState, saveState } from '../../src/store/embedded/snapshot.ts'
import { State } from '../../src/store/embedded/state.ts'
import { Powgate } from '../cli/cli-process.ts'
import { noteText } from '../harness/canaries.ts'
import { Client } from '../harness/client.ts'
import { eventually, PATIENCE_MS, within } from '../harness/eventually.ts'
import { call, closeIdleConnections, freshAddress } from '../harness/http.ts'
import { startObserved } from '../harness/metrics.ts'
import { freePort, listenAnywhere } from '../harness/ports.ts'
import { childPids, endProcess, isAlive, leftovers, listeningPids, workerPids } from '../harness/processes.ts'
import { RawConnection } from '../harness/raw-http.ts'
import { RedisServer } from '../harness/redis.ts'
import { TestService, type TestSite } from '../harness/service.ts'
import { temporaryDir } from '../harness/temporary.ts'

/** A worker that is not told to end, or does not listen, would be killed after this time. */
const LONG_DRAIN = { POWGATE_DRAIN_SECONDS: '300' }

const UNKNOWN_SITE = 'site_0000000000000000000000'
const MAIN = new URL('../../dist/main.js', import.meta.url).pathname

/** Whatever a test has started ends with it. */
afterEach(async () => {
  for (const server of [...leftovers].reverse()) await server.stop()
})

/** Before a program that root starts: without these capabilities even root obeys the modes of files. */
const OBEYING =
  process.getuid?.() === 0
    ? ['setpriv', ...['--bounding-set', '--inh-caps'].flatMap(set => [set, '-dac_override,-dac_read_search'])]
    : []

/** @param before a program, and its arguments, that starts the service @param typed arguments of the service's own */
function start(env: Record<string, string>, before: readonly string[] = [], typed: readonly string[] = []) {
  const { PATH, HOME } = process.env
  const [program = '', ...args] = [...before, process.execPath, MAIN, ...typed]
  const child = spawn(program, args, { env: { PATH, HOME, HOST: '127.0.0.1', ...env } })
  leftovers.add({ stop: () => endProcess(child, 'SIGKILL') })
  let stdout = ''
  let stderr = ''
  child.stdout!.on('data', chunk => (stdout += chunk))
  child.stderr!.on('data', chunk => (stderr += chunk))
  const ended = once(child, 'close').then(([code]) => {
    noteText('output', `${stdout}\n${stderr}`)
    return { code: code as number | null, stderr }
  })
  return { child, ended, output: () => stdout }
}

test('a misconfigured start lists every problem, each with its variable, and exits 1', async () => {
  // All mistakes are in check.test.ts.
  const env = { PORT: 'eighty', POWGATE_WORKER: '2', REDIS_URL: 'redis://user:hunter2@localhost' }
  const { code, stderr } = await start(env).ended
  assert.equal(code, 1)
  assert.deepEqual(stderr.split('\n'), [
    'POWGATE_WORKER: there is no such setting (did you mean POWGATE_WORKERS?)',
    'PORT: expected an integer from 0 to 65535, got "eighty"',
    'POWGATE_SECRETS: needed with REDIS_URL; expected one or more secrets of at least 32 characters, separated by commas',
    '',
  ])
})

test('a clock before 2024 is one line: no challenge could carry its time', async () => {
  const { code, stderr } = await start({ NODE_OPTIONS: '--import data:text/javascript,Date.now=()=>0' }).ended
  assert.deepEqual([code, stderr], [1, 'the clock of this machine is before 2024: set it\n'])
})

test('arguments are refused, because whoever types a command does not want the service', async () => {
  const { code, stderr } = await start({}, [], ['site', 'create', '--name', 'my shop']).ended
  assert.equal(code, 2)
  assert.match(stderr, /takes no arguments\. .*: node \S+\/cli\/main\.js site create --name 'my shop'\n$/)
})

/** Whether a process has a handler of a signal: Linux tells all that it handles as one number, a bit each. */
function catches(pid: number, signal: number): boolean {
  const caught = /^SigCgt:\t(\w+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]
  return ((BigInt(`0x${caught}`) >> BigInt(signal - 1)) & 1n) === 1n
}

test('SIGTERM at any moment of a start, or while a worker is replaced, ends the service at once; SIGHUP, SIGUSR1 and SIGUSR2 do not', async () => {
  const end = async ({ child, ended, output }: ReturnType<typeof start>, when: string) => {
    const startedAtMs = performance.now()
    // Node.js itself handles SIGTERM from its first moment. early-signals.ts does right before it handles SIGUSR2.
    const hasHandler = catches(child.pid!, constants.signals.SIGUSR2)
    child.kill('SIGTERM')
    const { code } = await ended
    assert.ok(performance.now() - startedAtMs < PATIENCE_MS, when)
    assert.ok(code === 0 || (code === null && !hasHandler), `${when}: ${code}`) // null: the signal itself ended it
    assert.doesNotMatch(output().split('"stopping')[1] ?? '', /powgate listens/, when)
  }
  const startOn = (port: number) =>
    start({ PORT: String(port), POWGATE_DATA_DIR: temporaryDir('stop'), POWGATE_WORKERS: '2', ...LONG_DRAIN })
  for (const ms of [200, 900, 1500]) {
    const started = startOn(await freePort())
    await sleep(ms)
    await end(started, `${ms} ms after the start`)
  }
  const port = await freePort()
  const started = startOn(port)
  // Node.js itself handles SIGUSR1 from its first moment, and would open a debugger, but never SIGUSR2.
  await eventually(PATIENCE_MS, 'main.ts runs', () => catches(started.child.pid!, constants.signals.SIGUSR2))
  started.child.kill('SIGHUP')
  await eventually(PATIENCE_MS, 'it listens', () => started.output().includes('powgate listens'))
  for (const signal of ['SIGUSR1', 'SIGUSR2'] as const) started.child.kill(signal)
  process.kill(listeningPids(port)[0]!, 'SIGKILL')
  await eventually(PATIENCE_MS, 'a replacement', () => started.output().includes('it is replaced'))
  await sleep(100)
  await end(started, 'while a worker is replaced')
  assert.equal((await started.ended).stderr.includes('Debugger'), false)
})

test('a cluster manager that starts it as its own worker (pm2 -i) gets one line and exit 1', async () => {
  const script = `import cluster from 'node:cluster'
    cluster.setupPrimary({ exec: process.argv[2] })
    cluster.fork().on('exit', code => process.exit(code))`
  const manager = join(temporaryDir('manager'), 'manager.mjs')
  writeFileSync(manager, script)
  const child = spawn(process.execPath, [manager, MAIN])
  let stderr = ''
  child.stderr.on('data', chunk => (stderr += chunk))
  const [code] = await once(child, 'close')
  assert.equal(code, 1)
  assert.match(stderr, /^no primary process of powgate answers: .*pm2: without -i\)\n$/)
})

test('a start waits for Redis, says so, is not ready meanwhile, and gives up with one clear line', async () => {
  const [port, adminPort] = [await freePort(), await freePort()]
  const { ended, output } = start({
    PORT: String(await freePort()),
    REDIS_URL: `redis://:a-password@127.0.0.1:${port}`,
    POWGATE_SECRETS: 'x'.repeat(32),
    POWGATE_STORE_WAIT_SECONDS: '2',
    POWGATE_ADMIN_PORT: String(adminPort),
  })
  const startedAtMs = performance.now()
  await eventually(60_000, 'it says that it waits', () => output().includes('waiting for Redis'))
  const line = `waiting for Redis at 127.0.0.1:${port}: nothing listens there \\(127.*; giving up in \\d s`
  assert.match(output(), new RegExp(line))
  for (const path of ['/healthz', '/readyz'])
    assert.equal((await call(`http://127.0.0.1:${adminPort}${path}`)).status, 503)
  const metrics = (await call(`http://127.0.0.1:${adminPort}/metrics`)).text
  assert.match(metrics, /^powgate_store_up 0$.*^powgate_store_down\{cause="refused"\} 1$/ms)
  const { code, stderr } = await ended
  assert.ok(performance.now() - startedAtMs > 1900)
  assert.equal(code, 1)
  assert.match(stderr, /^REDIS_URL: cannot use Redis at 127\.0\.0\.1:\d+: nothing listens there \(.*\n$/)
  assert.ok(!stderr.includes('a-password') && !output().includes('a-password'))
})

test('a start goes on when Redis comes; SIGTERM ends the wait at once, a wrong password does too', async () => {
  const redis = await RedisServer.start(['--requirepass', 'right'])
  const ports = [await freePort(), await freePort()]
  const settings = (password: string, index = 0) => ({
    PORT: String(ports[index]),
    REDIS_URL: redis.url.replace('://', `://:${password}@`),
    POWGATE_SECRETS: 'x'.repeat(32),
    POWGATE_STORE_WAIT_SECONDS: '300',
  })
  const refused = await start(settings('wrong')).ended
  assert.equal(refused.code, 1)
  assert.match(refused.stderr, /^REDIS_URL: cannot use Redis at [\d.:]+: WRONGPASS.*\n$/)
  assert.ok(!refused.stderr.includes(':wrong@'))

  await redis.kill()
  const [first, second] = [start(settings('right')), start(settings('right', 1))]
  const bothWait = () => [first, second].every(({ output }) => output().includes('waiting for Redis'))
  await eventually(60_000, 'both wait', bothWait)
  first.child.kill('SIGTERM')
  assert.equal((await first.ended).code, 0)
  await redis.boot(['--requirepass', 'right'])
  await eventually(60_000, 'the other has started', () => second.output().includes('powgate listens'))
  second.child.kill('SIGTERM')
  assert.equal((await second.ended).code, 0)
})

test('an occupied port is one clear line naming the variable, also when the other is powgate', async () => {
  const blocker = createServer()
  const port = await listenAnywhere(blocker)
  const begin = () => start({ PORT: String(port), POWGATE_DATA_DIR: temporaryDir('start') })
  const refused = [await begin().ended]
  blocker.close()

  const both = [begin(), begin()] // at once, so neither listens when the other looks
  const oneEnded = Promise.race(both.map(({ ended }) => ended))
  refused.push(await within(PATIENCE_MS, oneEnded, () => 'one of two is refused'))
  const serving = () => both.find(({ output }) => output().includes('powgate listens'))
  const { child, ended } = await eventually(PATIENCE_MS, 'the other serves', serving)
  refused.push(await begin().ended)
  const stderr = `PORT: cannot listen on 127.0.0.1:${port}: the port is taken\n`
  assert.deepEqual(refused, Array(3).fill({ code: 1, stderr }))
  child.kill('SIGTERM')
  await ended
})

test('a data directory that cannot be used is one clear line naming the variable', async () => {
  const dir = temporaryDir('start')
  writeFileSync(join(dir, 'file'), '')
  const asFile = await start({ POWGATE_DATA_DIR: join(dir, 'file') }).ended
  symlinkSync(join(dir, 'nowhere/at/all'), join(dir, 'dangling'))
  const dangling = await start({ POWGATE_DATA_DIR: join(dir, 'dangling/powgate') }).ended
  chmodSync(dir, 0o000)
  const unreadable = await start({ POWGATE_DATA_DIR: dir }, OBEYING).ended
  for (const { code, stderr } of [asFile, dangling, unreadable]) {
    assert.equal(code, 1)
    assert.match(stderr, /^POWGATE_DATA_DIR: cannot use the directory .*\n$/)
  }
  chmodSync(dir, 0o700)
})

test('a first start that cannot write first-keys is one line, and makes no site whose API key nobody has', async () => {
  const env = { PORT: '0', POWGATE_DATA_DIR: temporaryDir('start') }
  mkdirSync(join(env.POWGATE_DATA_DIR, 'first-keys'))
  for (let time = 0; time < 2; time++)
    assert.match((await start(env).ended).stderr, /^POWGATE_DATA_DIR: cannot write .*: it is a directory\n$/)
})

test('a working directory that is gone is one line, for the service and for commands', () => {
  for (const entry of ['main.js', 'cli/main.js serve']) {
    const gone = temporaryDir('gone')
    // Signals have handlers before anything else is loaded, so that process 1 of a container hears them.
    const heard = `data:text/javascript,process.on('exit',()=>console.log(process.listenerCount('SIGHUP')))`
    const line = `cd ${gone} && rmdir ${gone} && exec ${process.execPath} --import "${heard}" ${resolve('dist', entry)}`
    const { status, stdout, stderr } = spawnSync('sh', ['-c', line], { encoding: 'utf8' })
    assert.deepEqual([status, stdout, stderr.split('\n').length], [1, '1\n', 2])
    assert.match(stderr, /^the working directory is gone: /)
  }
})

async function assertRedeems({ url }: TestService, { siteKey, apiKey }: TestSite): Promise<void> {
  const client = new Client(url)
  const token = await client.token(siteKey, { from: freshAddress() })
  assert.equal((await client.verifyToken(apiKey, { token })).json.success, true)
}

test('the first start makes a secret and a demo site, and keeps its keys in a file; the second start keeps all, and the audit log', async () => {
  const service = await TestService.start('embedded', { POWGATE_SECRETS: '' })
  const first = service.output
  const keys = join(service.dataDir, 'first-keys')
  assert.equal(statSync(keys).mode & 0o777, 0o600)
  assert.match(first, new RegExp(`\n {2}API key {3}in ${keys}\n`))
  const site = readFirstKeys(service.dataDir)!
  assert.ok(first.includes(site.siteKey) && !/sk_/.test(first))
  await assertRedeems(service, site)
  const entries = async () => {
    const store = await service.openSites()
    return store.readAudit({ limit: 100 }).finally(() => store.close())
  }
  const audit = await entries()
  const told = audit.map(({ who, how, action, siteKey }) => `${who}, ${how}: ${action} ${siteKey}`)
  const made = (how: string, siteKey: string) =>
    ['key', 'site'].map(what => `powgate (${how}) at ${hostname()}, ${how}: ${what}-created ${siteKey}`)
  const ofDemo = [...DEMO_SITE_KEYS].flatMap(key => made('demo page', key))
  assert.deepEqual(told.sort(), [...made('first start', site.siteKey), ...ofDemo].sort())
  assert.ok(!JSON.stringify(audit).includes(site.apiKey.slice(12)))
  const file = join(service.dataDir, 'secret')
  assert.equal(statSync(file).mode & 0o777, 0o600)
  const secret = readFileSync(file, 'utf8')
  assert.equal(statSync(join(service.dataDir, 'sites.jsonl')).mode & 0o777, 0o600)

  assert.equal(await service.end(), 0)
  chmodSync(service.dataDir, 0o755)
  await service.boot()
  const second = service.output.slice(first.length)
  assert.match(second, /POWGATE_DATA_DIR: other users can reach .* \(mode 755\)/)
  await assertRedeems(service, site)
  assert.deepEqual(await entries(), audit)
  assert.equal(readFileSync(file, 'utf8'), secret)
})

test('a new worker that misses the file of the secret says so; one that made another would refuse what the old ones issue', async () => {
  const service = await TestService.start('embedded', { POWGATE_SECRETS: '' })
  const file = join(service.dataDir, 'secret')
  renameSync(file, `${file}.away`)
  process.kill(workerPids(service.pid)[0]!, 'SIGKILL')
  await eventually(PATIENCE_MS, 'told', () => service.output.includes('/secret: it is gone. Put back a copy'))
  assert.ok(!existsSync(file))
  renameSync(`${file}.away`, file)
})

test('of a state of before a reboot only usual rates are read; a start after the last site was deleted is no first one', async () => {
  const service = await TestService.start('embedded')
  await service.end()
  const state = new State(2 ** 30)
  assert.equal(loadState(service.dataDir, state), undefined)
  saveState(service.dataDir, state, 'another boot')
  assert.doesNotMatch(service.output, /a reboot/)
  await service.boot()
  assert.match(service.output, /"level":"info".*the state is of before a reboot, or old: only usual rates/)
  const site = readFirstKeys(service.dataDir)!
  await assertRedeems(service, site)

  await new Powgate(service.env).text(`site delete ${site.siteKey} --name demo`)
  await service.end()
  const before = service.output.length
  await service.boot()
  assert.match(service.output.slice(before), /"level":"info".*there are no sites yet in /)
  assert.doesNotMatch(service.output.slice(before), /First start/)
  assert.equal((await call(`${service.url}/demo`)).status, 404)
})

test('without a terminal, standard output is the log alone: one JSON object a line, also at a first start', async () => {
  const env = { PORT: String(await freePort()), POWGATE_DATA_DIR: temporaryDir('start') } // few files: warnings are lines too
  const { child, ended, output } = start({ ...env, POWGATE_WORKERS: '10' }, ['prlimit', '--nofile=60'])
  await eventually(60_000, 'it listens', () => output().includes('powgate listens'))
  assert.match(output(), /a worker may open 60 files, enough for 12 connections: raise the limit/)
  assert.match(output(), /the store process may open 60 files, and needs 62 for POWGATE_WORKERS=10: raise/)
  child.kill('SIGTERM')
  assert.match((await ended).stderr, /^\nFirst start: .*\n {2}API key {3}in \S+\n/s)
  for (const line of output().trim().split('\n')) assert.equal(JSON.parse(line).name, 'powgate')
  assert.doesNotMatch(output(), /sk_/)
})

test('SIGTERM finishes what is under way, and exits 0 with one worker as with several', async () => {
  for (const workers of ['1', '3']) {
    const service = await TestService.start('embedded', { POWGATE_WORKERS: workers, ...LONG_DRAIN })
    const client = new Client(service.url)
    const site = await service.createSite()
    const ask = () => client.challenge(site.siteKey, { from: freshAddress() })
    const answers = Promise.all(Array.from({ length: 50 }, ask))
    await sleep(20)
    const code = service.end('SIGTERM')
    for (const { status } of await answers) assert.equal(status, 200)
    closeIdleConnections()
    assert.equal(await code, 0)
  }
})

test('HOST, PORT=0, POWGATE_WORKERS and POWGATE_ADMIN_PORT are honoured; health and readiness answer', async () => {
  const { service, adminUrl } = await startObserved('redis', { POWGATE_WORKERS: '3' })
  const admin = (path: string) => call(adminUrl + path)
  assert.deepEqual([(await admin('/healthz')).status, (await admin('/healthz')).json], [200, { ok: true }])
  await eventually(PATIENCE_MS, 'ready', async () => (await admin('/readyz')).status === 200)
  assert.equal((await admin('/other')).status, 404)
  assert.match(service.output, /"workers":3/)
  await service.redis!.kill()
  await eventually(PATIENCE_MS, 'not ready', async () => (await admin('/readyz')).status === 503)
  assert.equal((await admin('/healthz')).status, 200)
  await service.stop()

  const free = await TestService.start('embedded', { PORT: '0', HOST: '127.0.0.2' })
  const url = /powgate listens on (http:\/\/127\.0\.0\.2:\d+)/.exec(free.output)![1]!
  assert.equal((await call(`${url}/nothing`)).status, 404)
  assert.match(free.output, /"level":"warn".*HOST is a loopback address.*POWGATE_TRUSTED_PROXIES/)
})

test('an X-Forwarded-For of others than the trusted proxies is ignored, of which the log tells; so it does of one without a client, and of wide ranges', async () => {
  const env = { POWGATE_TRUSTED_PROXIES: '127.0.0.1, 10.0.0.0/8', POWGATE_WORKERS: '1' }
  const service = await TestService.start('embedded', env)
  const client = new Client(service.url)
  for (const from of ['127.0.0.9', '127.0.0.8'])
    await client.challenge(UNKNOWN_SITE, { from, headers: { 'X-Forwarded-For': '203.0.113.7' } })
  for (const hops of ['203.0.113.7', 'unknown', '203.0.113.7, unknown'])
    await client.challenge(UNKNOWN_SITE, { from: '127.0.0.1', headers: { 'X-Forwarded-For': hops } })
  const lines = (text: string) => service.output.split('\n').filter(line => line.includes(text))
  const told = () => lines('X-Forwarded-For is ignored')
  const malformed = () => lines('X-Forwarded-For of a trusted proxy names no client')
  await eventually(PATIENCE_MS, 'two lines of the log', () => told().length > 0 && malformed().length > 0)
  assert.match(malformed().join('\n'), /^.*"level":"warn".*"peer":"127\.0\.0\.1".*$/) // once
  const line = /^.*"level":"warn".*"peer":"127\.0\.0\.9","setting":"POWGATE_TRUSTED_PROXIES".*$/
  assert.match(told().join('\n'), line)
  assert.doesNotMatch(told()[0]!, /203\.0\.113\.7/)
  assert.match(service.output, /"level":"warn".*POWGATE_TRUSTED_PROXIES: 10\.0\.0\.0\/8 is wide/)
})

const GET = 'GET /nothing HTTP/1.1\r\nHost: a\r\n\r\n'
const open = ({ port }: TestService) => RawConnection.open(port, '127.0.0.1')

/** The status of the answer, and what it says of the connection. */
async function asked(connection: RawConnection, text: string) {
  const answer = await connection.request(text)
  return [answer?.status, answer?.headers.connection]
}

const PREFLIGHT = 'OPTIONS /challenge HTTP/1.1\r\nHost: a\r\n\r\n'

test('SIGTERM: first not ready, then no listeners, then connections end by their next answer, then exit 0', async () => {
  const env = { POWGATE_UNREADY_SECONDS: '2', POWGATE_DRAIN_SECONDS: '60' }
  const { service, adminUrl } = await startObserved('embedded', env)
  const { siteKey } = await service.createSite()
  const status = async (path: string) => (await call(adminUrl + path)).status
  await eventually(PATIENCE_MS, 'ready', async () => (await status('/readyz')) === 200)
  const [used, unused, preflighted, slow] = await Promise.all([1, 2, 3, 4].map(() => open(service)))
  for (const connection of [used!, preflighted!])
    assert.deepEqual(await asked(connection, GET), [404, undefined])
  const head = `POST /verify HTTP/1.1\r\nHost: a\r\nX-Site-Key: ${siteKey}\r\nContent-Type: application/json\r\n`
  await slow!.send(`${head}Content-Length: 2\r\n\r\n{`)
  await call(`${service.url}/nothing`)
  closeIdleConnections()

  const askedAtMs = performance.now()
  process.kill(service.pid, 'SIGTERM')
  await eventually(PATIENCE_MS, 'not ready', async () => (await status('/readyz')) === 503)
  if (performance.now() - askedAtMs < 1500) {
    const { status } = await call(`${service.url}/nothing`)
    assert.equal(status, 404, 'it serves until the balancer has noticed')
    assert.deepEqual(await asked(used!, GET), [404, undefined])
  }
  closeIdleConnections()
  await eventually(PATIENCE_MS, 'no listeners', () => listeningPids(service.port).length === 0)
  assert.ok(performance.now() - askedAtMs >= 2000)
  assert.deepEqual([await status('/healthz'), await status('/readyz')], [200, 503])

  await sleep(500)
  const isOpen = [used, unused, preflighted, slow].every(connection => !connection!.isClosed)
  assert.ok(isOpen, 'idle ones stay open')
  assert.deepEqual(await asked(used!, GET), [404, 'close'])
  assert.deepEqual(await asked(preflighted!, PREFLIGHT), [200, 'close']) // whose answer src/routes.ts makes apart
  assert.deepEqual(await asked(slow!, '}'), [400, 'close'])
  await eventually(PATIENCE_MS, 'they end', () => used!.isClosed && preflighted!.isClosed && slow!.isClosed)
  assert.equal(await status('/healthz'), 200)
  unused!.close()
  assert.equal(await service.ended(), 0)
  assert.ok(performance.now() - askedAtMs < 40_000, 'it does not wait for what is not there')
})

test('SIGINT does not wait for a balancer; what is still connected at the end of the drain time is closed', async () => {
  const env = { POWGATE_UNREADY_SECONDS: '300', POWGATE_DRAIN_SECONDS: '2' }
  const service = await TestService.start('embedded', env)
  const idle = await open(service)
  await idle.request(GET)
  const askedAtMs = performance.now()
  assert.equal(await service.end('SIGINT'), 0)
  const tookMs = performance.now() - askedAtMs
  assert.ok(tookMs >= 1900 && tookMs < PATIENCE_MS, `${tookMs} ms`)
  await eventually(PATIENCE_MS, 'it is closed', () => idle.isClosed)
})

test('a second signal ends it at once, with exit 1; the same one delivered twice does not', async () => {
  const service = await TestService.start('embedded', LONG_DRAIN)
  const [idle, used] = [await open(service), await open(service)]
  await Promise.all([idle.request(GET), used.request(GET)])
  const pids = workerPids(service.pid)
  process.kill(service.pid, 'SIGTERM')
  process.kill(service.pid, 'SIGINT')
  for (const pid of pids) process.kill(pid, 'SIGTERM') // service managers send it to all processes of a service
  await eventually(PATIENCE_MS, 'no listeners', () => listeningPids(service.port).length === 0)
  // Signals within half a second count as one (SAME_SIGNAL_MS of src/process/lifecycle.ts), and the first may be heard late.
  await sleep(700)
  assert.ok(!idle.isClosed)
  assert.equal((await used.request(GET))?.status, 404)
  await assert.rejects(open(service), { code: 'ECONNREFUSED' })
  process.kill(service.pid, 'SIGTERM')
  assert.equal(await service.ended(), 1)
  await eventually(PATIENCE_MS, 'workers are gone', () => pids.every(pid => !isAlive(pid)))
})

test('processes say what they are; kill -9 of the primary: the workers leave by themselves, and the next start finds the port free', async () => {
  const service = await TestService.start('embedded')
  const title = (pid: number) => readFileSync(`/proc/${pid}/cmdline`, 'latin1').replace(/\0.*$/s, '')
  assert.equal(title(service.pid), 'powgate primary')
  const pids = childPids(service.pid)
  const titles = pids.map(title).sort()
  assert.deepEqual(titles, ['powgate store', 'powgate worker 0', 'powgate worker 1'])
  closeIdleConnections()
  process.kill(service.pid, 'SIGKILL')
  await service.ended()
  await service.boot() // at once, as a service manager does
  await eventually(PATIENCE_MS, 'the old workers are gone', () => pids.every(pid => !isAlive(pid)))
  assert.equal((await call(`${service.url}/nothing`)).status, 404)
})

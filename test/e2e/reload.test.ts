/** SIGHUP: new settings and code are loaded; each mistake in them is reported, and the old ones stay in use. Also faults in the code. */

import assert from 'node:assert/strict'
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { loadConfig } from '../../src/config/config.ts'
import { Keyring } from '../../src/domain/keyring.ts'
import { reloadSettings } from '../../src/process/lifecycle.ts'
import { Client } from '../harness/client.ts'
import { eventually, PATIENCE_MS } from '../harness/eventually.ts'
import { call, closeIdleConnections, freshAddress } from '../harness/http.ts'
import { PrometheusText } from '../harness/metrics.ts'
import { freePort } from '../harness/ports.ts'
import { leftovers, listeningPids, workerPids } from '../harness/processes.ts'
import { RawConnection } from '../harness/raw-http.ts'
import { RedisServer } from '../harness/redis.ts'
import { CONNECTIONS, TestService } from '../harness/service.ts'
import { copyOfBuild, temporaryDir } from '../harness/temporary.ts'

const dir = temporaryDir('reload')
const configFile = join(dir, 'powgate.conf')
/** Whatever a test has started ends with it. */
afterEach(async () => {
  for (const server of [...leftovers].reverse()) await server.stop()
})

/** As TestService starts, unless the settings say otherwise. */
const WORKERS = 2

/** A service with a file of settings, which may change; those of `env` cannot. All tests have the same file, one after the other. */
function start(lines: string, env: Record<string, string> = {}, main?: string): Promise<TestService> {
  writeFileSync(configFile, lines)
  return TestService.start('embedded', { POWGATE_CONFIG_FILE: configFile, ...env }, main)
}

function count(service: TestService, text: string): number {
  return service.output.split(text).length - 1
}

/** Sends SIGHUP and resolves with what was printed from then on, until the text came. */
async function reload(service: TestService, until: string): Promise<string> {
  closeIdleConnections()
  const [from, times] = [service.output.length, count(service, until)]
  process.kill(service.pid, 'SIGHUP')
  await eventually(PATIENCE_MS, until, () => count(service, until) > times)
  return service.output.slice(from)
}

async function serves(service: TestService): Promise<boolean> {
  return (await call(`${service.url}/nothing`, { from: freshAddress() })).status === 404
}

test('a broken configuration is told problem by problem, and changes nothing', async () => {
  const adminPort = String(await freePort())
  const [before, after] = ['a', 'b'].map(letter => letter.repeat(40))
  const secret = `POWGATE_SECRETS=${before}\n`
  const env = { POWGATE_ADMIN_PORT: adminPort, POWGATE_SECRETS: '' }
  const service = await start(`POWGATE_LIMIT_CHALLENGE_ADDRESS=50\n${secret}`, env)
  const shown = async () => {
    const metrics = new PrometheusText((await call(`http://127.0.0.1:${adminPort}/metrics`)).text)
    const ofReload = (name: string) => metrics.value(`powgate_config_last_reload_${name}`)
    const [isDone, seconds] = ['successful', 'success_timestamp_seconds'].map(ofReload)
    const keyIds = metrics.samples('powgate_signing_key_info').map(({ labels }) => Number(labels.id))
    const restarts = ['roll', 'crash'].map(cause => metrics.value('powgate_worker_restarts_total', { cause }))
    return { isDone, seconds: seconds!, keyIds, restarts }
  }
  const keyIdOf = (text: string) => new Keyring([text]).signing.kid
  const first = await shown()
  assert.deepEqual([first.isDone, first.keyIds], [1, [keyIdOf(before!)]])
  assert.ok(Math.abs(first.seconds - Date.now() / 1000) < 60)
  const pids = workerPids(service.pid)
  writeFileSync(configFile, 'POWGATE_LIMIT_CHALLENGE_ADDRESS=many\nPOWGATE_LIMITS=3\nLOG_LEVEL=loud\n')
  const output = await reload(service, 'LOG_LEVEL: expected')
  assert.match(output, /POWGATE_LIMIT_CHALLENGE_ADDRESS: expected an integer/)
  assert.match(output, /POWGATE_LIMITS: there is no such setting/)
  assert.deepEqual(workerPids(service.pid), pids)
  assert.ok(await serves(service))
  assert.deepEqual(await shown(), { ...first, isDone: 0 })

  writeFileSync(configFile, `POWGATE_LIMIT_CHALLENGE_ADDRESS=40\nPOWGATE_SECRETS=${after}\n`)
  await reload(service, 'all workers are new')
  assert.ok(workerPids(service.pid).every(pid => !pids.includes(pid)))
  const second = await shown()
  assert.deepEqual([second.isDone, second.keyIds, second.restarts], [1, [keyIdOf(after!)], [WORKERS, 0]])
  assert.ok(second.seconds > first.seconds)
})

test('changed limits hold and the number of workers follows; what needs a restart stays, and is named', async () => {
  const lines = 'POWGATE_LIMIT_CHALLENGE_ADDRESS_SITE=3\nPOWGATE_WORKERS=1\n'
  const service = await start(lines, { POWGATE_WORKERS: '' })
  const site = await service.createSite()
  const client = new Client(service.url)
  /** How many challenges a new address gets. */
  const admitted = async () => {
    const from = freshAddress()
    for (let index = 0; ; index++)
      if ((await client.challenge(site.siteKey, { from })).status === 429) return index
  }
  assert.equal(await admitted(), 3)

  const more = 'POWGATE_LIMIT_CHALLENGE_ADDRESS_SITE=7\nPOWGATE_WORKERS=3\n'
  const kept = 'PORT=1\nPOWGATE_DATA_DIR=/nowhere\nPOWGATE_STATE_MAX_MB=16\nREDIS_URL=redis://a-host\n'
  writeFileSync(configFile, more + kept)
  const grown = await reload(service, 'all workers are new')
  const told = JSON.parse(grown.split('\n').find(line => line.includes('only with a restart'))!)
  // PORT and POWGATE_DATA_DIR are set by the environment, which goes before the file.
  assert.deepEqual(told.settings, ['POWGATE_STATE_MAX_MB', 'REDIS_URL'])
  assert.equal(listeningPids(service.port).length, 3)
  assert.equal(await admitted(), 7)

  writeFileSync(configFile, 'POWGATE_WORKERS=2\nPOWGATE_ADMIN_PORT=1\nPOWGATE_DEMO=on\n')
  const shrunk = await reload(service, 'all workers are new')
  assert.match(shrunk, /"changed":\["POWGATE_WORKERS","POWGATE_LIMIT_CHALLENGE_ADDRESS_SITE"\]/)
  assert.match(shrunk, /"settings":\["POWGATE_ADMIN_PORT","POWGATE_DEMO"\]/)
  assert.equal(listeningPids(service.port).length, 2)
  assert.equal(workerPids(service.pid).length, 2)
  assert.equal(await admitted(), 30) // the default

  // Listeners of that kind could not share the port with those that are there.
  writeFileSync(configFile, 'POWGATE_PROXY_PROTOCOL=on\nPOWGATE_TRUSTED_PROXIES=10.0.0.0/8\n')
  const line = await reload(service, 'all workers are new')
  assert.match(line, /"settings":\["POWGATE_TRUSTED_PROXIES","POWGATE_PROXY_PROTOCOL"\]/)
  assert.equal(await admitted(), 30)
})

test('a file that names another store is no mistake, and changes nothing of the one in use', () => {
  const secrets = { POWGATE_SECRETS: 's'.repeat(32) }
  const plain = { REDIS_URL: 'redis://a', POWGATE_REDIS_PASSWORD: 'p', ...secrets }
  const tls = { REDIS_URL: 'rediss://a/1', POWGATE_REDIS_TLS_NAME: 'b', ...secrets }
  for (const settings of [{}, plain, tls])
    for (const file of [{}, plain, tls]) {
      const config = loadConfig(settings)
      assert.deepEqual(reloadSettings(file, { settings, config }).config.redis, config.redis)
    }
})

test('SIGHUPs during a roll make one more roll; SIGTERM during a roll ends all of it', async () => {
  const service = await start('# no settings\n', { POWGATE_DRAIN_SECONDS: '60' })
  // Its worker leaves when the connection ends, so the roll lasts until all signals are heard.
  const held = await RawConnection.open(service.port)
  await held.request('GET /nothing HTTP/1.1\r\nHost: a\r\n\r\n')
  process.kill(service.pid, 'SIGHUP')
  await eventually(PATIENCE_MS, 'the roll has begun', () => service.output.includes('renewing all workers'))
  for (let index = 0; index < 4; index++) {
    process.kill(service.pid, 'SIGHUP')
    await eventually(PATIENCE_MS, 'it was heard', () => count(service, 'a rolling restart follows') > index)
  }
  held.close()
  await eventually(PATIENCE_MS, 'two rolls', () => count(service, 'all workers are new') === 2)
  await new Promise(resolve => setTimeout(resolve, 300))
  assert.equal(count(service, 'renewing all workers'), 2)

  process.kill(service.pid, 'SIGHUP')
  const pids = await eventually(PATIENCE_MS, 'a successor', () => {
    const children = workerPids(service.pid)
    return children.length === WORKERS + 1 ? children : undefined
  })
  assert.equal(await service.end('SIGTERM'), 0)
  for (const pid of pids) assert.throws(() => process.kill(pid, 0), { code: 'ESRCH' })
  assert.equal(count(service, 'all workers are new'), 2)
})

test('a successor that is killed, or whose store does not answer, ends the roll: the old ones serve on', async () => {
  const service = await TestService.start('redis', { POWGATE_STORE_WAIT_SECONDS: '1' })
  const pids = workerPids(service.pid)
  process.kill(service.pid, 'SIGHUP')
  const newPid = () => workerPids(service.pid).find(pid => !pids.includes(pid))
  const successor = await eventually(PATIENCE_MS, 'a successor', newPid)
  process.kill(successor, 'SIGKILL')
  const hasEnded = () => service.output.includes('the rolling restart ends here')
  await eventually(PATIENCE_MS, 'the end of the roll', hasEnded)
  assert.match(service.output, /"problem":"it ended before it was ready"/)
  assert.deepEqual(workerPids(service.pid), pids)

  await service.redis!.kill()
  // Without its store a first worker listens after 1 s, but a successor waits 3 s for it, then ends: 2.5 s lies between.
  const hasListened = sleep(2500).then(() => listeningPids(service.port))
  const output = await reload(service, 'the rolling restart ends here')
  assert.match(output, /"problem":"its store does not answer within 3 s: REDIS_URL: [^"]+nothing listens /)
  assert.deepEqual((await hasListened).sort(), [...pids].sort())
  await eventually(PATIENCE_MS, 'the successor is gone', () => workerPids(service.pid).length === WORKERS)
  assert.deepEqual(workerPids(service.pid), pids)
  assert.ok(await serves(service))
  await service.redis!.boot()
  await reload(service, 'all workers are new')
})

test('a worker that dies while its successor waits for the store is replaced at once', async () => {
  const service = await TestService.start('redis', { POWGATE_WORKERS: '1', POWGATE_STORE_WAIT_SECONDS: '60' })
  const [pid] = workerPids(service.pid)
  await service.redis!.kill()
  process.kill(service.pid, 'SIGHUP')
  await eventually(PATIENCE_MS, 'a successor', () => workerPids(service.pid).length === 2)
  process.kill(pid!, 'SIGKILL')
  await eventually(20_000, 'one listens', () => listeningPids(service.port).length === 1)
  await service.redis!.boot()
  await eventually(PATIENCE_MS, 'the roll ends', () => service.output.includes('all workers are new'))
  assert.equal(workerPids(service.pid).length, 1)
  assert.ok(await serves(service))
})

test('a successor that its store refuses ends the roll at once, with what the store says; workers that it refuses are renewed all at once', async () => {
  const redis = await RedisServer.start([], { password: 'the right one' })
  const password = (text: string) => writeFileSync(join(dir, 'password'), text)
  password('the right one')
  const lines = `POWGATE_REDIS_PASSWORD_FILE=${join(dir, 'password')}\nREDIS_URL=${redis.url}\n`
  const adminPort = String(await freePort())
  const service = await start(lines, {
    POWGATE_ADMIN_PORT: adminPort,
    POWGATE_STORE_WAIT_SECONDS: '3600',
    POWGATE_DRAIN_SECONDS: '60',
  })
  const pids = workerPids(service.pid)
  password('cannot use Redis') // a wrong one, and itself part of the line that says so: there it is withheld
  const output = await reload(service, 'the rolling restart ends here')
  assert.match(output, /"problem":"POWGATE_REDIS_PASSWORD_FILE: \[withheld\] at [\d.:]+: WRONGPASS [^"]+"/)
  await eventually(PATIENCE_MS, 'the successor is gone', () => workerPids(service.pid).length === WORKERS)
  assert.deepEqual(workerPids(service.pid), pids)
  assert.ok(await serves(service))
  password('the right one')
  writeFileSync(configFile, lines.replace('127.0.0.1', 'localhost'))
  await reload(service, 'all workers are new')
  const { storeName } = (await call(`http://127.0.0.1:${adminPort}/sites.json`)).json
  assert.match(storeName, /^Redis at localhost:/, 'as commands name it now')

  const told = count(service, 'WRONGPASS')
  await redis.kill()
  await redis.boot(['--requirepass', 'the right one now'])
  password('the right one now')
  await eventually(PATIENCE_MS, 'all are refused', () => count(service, 'WRONGPASS') === told + WORKERS)
  // Each worker has some of these, which keep it when it leaves: a roll that renews one after the other would wait for it.
  const held = await Promise.all(Array.from({ length: CONNECTIONS }, () => RawConnection.open(service.port)))
  for (const one of held) await one.request('GET /nothing HTTP/1.1\r\nHost: a\r\n\r\n')
  process.kill(service.pid, 'SIGHUP')
  await eventually(PATIENCE_MS, 'all at once', () => workerPids(service.pid).length === 2 * WORKERS)
  for (const one of held) one.close()
})

test('new code on disk is what new workers run; if it is broken, the old workers serve on', async () => {
  const build = copyOfBuild()
  const service = await start('# no settings\n', { POWGATE_DEMO: 'off' }, join(build, 'dist/main.js'))
  const message = async () => (await call(`${service.url}/nothing`, { from: freshAddress() })).json.error
  const file = join(build, 'dist/domain/outcome.js')
  const code = readFileSync(file, 'utf8')
  const before = await message()

  writeFileSync(file, code.replace(before, 'Nothing of the new version is here.'))
  assert.equal(await message(), before)
  await reload(service, 'all workers are new')
  assert.equal(await message(), 'Nothing of the new version is here.')

  const pids = workerPids(service.pid)
  writeFileSync(file, 'this is no JavaScript')
  await reload(service, 'the rolling restart ends here')
  assert.deepEqual(workerPids(service.pid), pids)
  assert.equal(await message(), 'Nothing of the new version is here.')
  writeFileSync(file, code)

  const wire = join(build, 'dist/store/wire.js')
  const layout = readFileSync(wire, 'utf8')
  writeFileSync(wire, layout.replace('LAYOUT = 1', 'LAYOUT = 2'))
  const refused = await reload(service, 'the rolling restart ends here')
  assert.match(refused, /"problem":"[^"]+ of another version: restart/)
  writeFileSync(wire, layout)
})

test('an exception that nobody catches ends a worker, or the primary with all workers; no secret in it is logged', async () => {
  const build = copyOfBuild()
  // start.ts imports this file, so the primary has the planted code too.
  appendFileSync(
    join(build, 'dist/process/worker.js'),
    `\nprocess.on('SIGUSR2', () => { const error = new Error('planted'); error.command = { args: ['sk_secret'] }; throw error })\n`,
  )
  const service = await start('# no settings\n', {}, join(build, 'dist/main.js'))
  const [first] = workerPids(service.pid)
  process.kill(first!, 'SIGUSR2')
  await eventually(PATIENCE_MS, 'another takes its place', () => {
    const pids = listeningPids(service.port)
    return pids.length === WORKERS && !pids.includes(first!)
  })
  assert.match(service.output, /"message":"planted".*a fault ends the process/)

  const workers = workerPids(service.pid)
  process.kill(service.pid, 'SIGUSR2')
  await eventually(PATIENCE_MS, 'the end', () => service.output.includes('the primary ends after a fault'))
  assert.equal(await service.ended(), 1)
  for (const pid of workers) assert.throws(() => process.kill(pid, 0), { code: 'ESRCH' })
  assert.ok(!service.output.includes('sk_secret'))
})

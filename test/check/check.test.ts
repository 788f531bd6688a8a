/** `powgate check`: a line for each mistake of bad configurations, facts and warnings about good ones, and nothing is made or changed. */

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer as createHttpServer } from 'node:http'
import { connect, createServer } from 'node:net'
import { dirname, join } from 'node:path'
import { after, describe, test } from 'node:test'
import { Powgate, written } from '../cli/cli-process.ts'
import { Client } from '../harness/client.ts'
import { eventually } from '../harness/eventually.ts'
import { startObserved } from '../harness/metrics.ts'
import { freePort, listenAnywhere } from '../harness/ports.ts'
import { RedisServer } from '../harness/redis.ts'
import { TEST_SECRET, TestService } from '../harness/service.ts'
import { temporaryDir } from '../harness/temporary.ts'

const dir = temporaryDir('check')
const dataDir = join(dir, 'data')
const powgate = new Powgate({ HOST: '127.0.0.1', PORT: '0', POWGATE_DATA_DIR: dataDir })

const fileOf = (name: string, text: string) => written(join(dir, name), text)

/** A Redis that asks for a password. */
const redis = await RedisServer.start([], { password: 'of the tests alone' })
/** A server of another program. */
const other = createServer(socket => socket.end('220 no HTTP\r\n'))
const otherPort = String(await listenAnywhere(other))
after(() => other.close())
/** With these the service takes connections with a PROXY header alone, which check has to send when it asks the service. */
const proxied = { POWGATE_PROXY_PROTOCOL: 'on', POWGATE_TRUSTED_PROXIES: '127.0.0.1' }
const { service } = await startObserved('embedded', proxied)

/** The setting names a site that no store has, of which check warns once it has read the sites. */
const POWGATE_METRICS_SITES = 'site_0000000000000000000000'
const onRedis = { REDIS_URL: redis.url, POWGATE_SECRETS: TEST_SECRET }

/**
 * Settings that cannot work, and the lines that say so, in their order: there must be no other. What can be wrong between powgate and
 * Redis is in store/redis-security.test.ts. Secrets here contain `hunter`, which no output may repeat. A spread of a literal only lets
 * several settings or patterns share a line.
 */
const BROKEN: Readonly<Record<string, readonly [Record<string, string>, ...RegExp[]]>> = {
  'a port that another powgate has, an admin port that another program has': [
    { PORT: String(service.port), POWGATE_ADMIN_PORT: otherPort },
    /^PORT: cannot listen on 127\.0\.0\.1:\d+: the port is taken$/,
    /^POWGATE_ADMIN_PORT: cannot listen on 127\.0\.0\.1:\d+: the port is taken$/,
  ],
  "another machine's addresses": [
    { HOST: '192.0.2.1', POWGATE_ADMIN_HOST: '192.0.2.1', POWGATE_ADMIN_PORT: '9' },
    /^HOST: cannot listen on 192\.0\.2\.1:0: this machine does not have the address$/,
    /^POWGATE_ADMIN_HOST: cannot listen on 192\.0\.2\.1:9: this machine does not have the address$/,
  ],
  'a wrong password in a file, of the user that all have': [
    { ...onRedis, POWGATE_REDIS_PASSWORD_FILE: fileOf('password', 'hunter2\n'), POWGATE_METRICS_SITES },
    /^POWGATE_REDIS_PASSWORD_FILE: cannot use Redis at [\d.:]+: WRONGPASS/,
  ],
  'a short secret': [{ POWGATE_SECRETS_FILE: fileOf('short', 'hunter2') }, /_SECRETS_FILE: secret 1 has 7 /],
  'Redis without secrets': [{ REDIS_URL: 'redis://127.0.0.1:1' }, /^POWGATE_SECRETS: needed with REDIS_URL/],
  'proxies that are everybody': [
    { POWGATE_TRUSTED_PROXIES: '0.0.0.0/0, ::/0, ::ffff:0:0/96' },
    ...[/got "0\.0\.0\.0\/0", which is everybody$/, /got "::\/0", which/, /got "::ffff:0:0\/96", which/],
  ],
  'PROXY protocol from nobody': [{ POWGATE_PROXY_PROTOCOL: 'on' }, /: expected POWGATE_TRUSTED_PROXIES to /],
  'one port for two': [{ PORT: '9090', POWGATE_ADMIN_PORT: '9090' }, /^POWGATE_ADMIN_PORT: expected anoth/],
  'a file of secrets that is not there': [
    {
      ...{ POWGATE_SECRETS_FILE: join(dir, 'none'), REDIS_URL: 'redis+sentinel://127.0.0.1:1/a' },
      ...{ POWGATE_REDIS_USER: 'a', POWGATE_REDIS_PASSWORD_FILE: join(dir, 'none') },
      ...{ POWGATE_SENTINEL_USER: 'a', POWGATE_SENTINEL_PASSWORD_FILE: join(dir, 'none') },
    },
    ...['SECRETS', 'REDIS_PASSWORD', 'SENTINEL_PASSWORD'].map(
      name => new RegExp(`^POWGATE_${name}_FILE: cannot read .*none: it does not exist$`),
    ),
  ],
  'a file of the URL that is not there': [
    { REDIS_URL_FILE: join(dir, 'none'), POWGATE_REDIS_USER: 'a', POWGATE_REDIS_PASSWORD: 'b' },
    /^REDIS_URL_FILE: cannot read /,
  ],
  'a secret and its file': [
    { POWGATE_SECRETS: TEST_SECRET, POWGATE_SECRETS_FILE: fileOf('twice', TEST_SECRET) },
    /^POWGATE_SECRETS_FILE: POWGATE_SECRETS is set too/,
  ],
  'a data directory whose secret is cut': [
    { POWGATE_DATA_DIR: dirname(fileOf('cut/secret', 'hunter2')) },
    /^POWGATE_DATA_DIR: cannot use the secret in .*: it is shorter than 32 characters/,
  ],
  'a data directory whose sites are lost': [
    { POWGATE_DATA_DIR: dirname(fileOf('lost/service-url', '')), POWGATE_METRICS_SITES },
    /^POWGATE_DATA_DIR: .*sites.jsonl is missing or has no sites, though a service ran here: /,
  ],
  'comments, quotation marks and bytes among the secrets': [
    { POWGATE_SECRETS_FILE: fileOf('odd', `# ${TEST_SECRET}\n"${TEST_SECRET}"\n${TEST_SECRET}\u0001\n`) },
    ...[/^POWGATE_SECRETS_FILE: secret 1 has a comment/, /secret 2 has a comment/, /secret 3 is not print/],
  ],
  'an empty file of settings, as a full disk leaves it': [
    { POWGATE_CONFIG_FILE: fileOf('empty.conf', '') },
    /^POWGATE_CONFIG_FILE: the file .* is empty$/,
  ],
  'a data directory that only a shell could find': [
    { POWGATE_DATA_DIR: '/srv/$USER/data' },
    /^POWGATE_DATA_DIR: expected a writable directory.*got "\/srv\/\$USER\/data"$/,
  ],
  'a long data directory': [{ POWGATE_DATA_DIR: join(dir, 'x'.repeat(99)) }, /longer than the 107 bytes/],
  'variables of Kubernetes that are none, or that clash with a setting': [
    {
      ...{ POWGATE_ADMIN_PORT: 'tcp://10.43.7.2:9090', POWGATE_PORT: '8080', POWGATE_SERVICE_HOST: 'here' },
      ...{ POWGATE_PORT_80_TCP_PROTO: 'quic' },
    },
    ...['PORT', 'SERVICE_HOST', 'PORT_80_TCP_PROTO'].map(
      name => new RegExp(`^POWGATE_${name}: there is no such setting`),
    ),
    /^POWGATE_ADMIN_PORT: .*got "tcp:.*, which Kubernetes sets .*enableServiceLinks: false/,
  ],
  'no file of settings': [{ POWGATE_CONFIG_FILE: join(dir, 'none') }, /^POWGATE_CONFIG_FILE: cannot read /],
  'a file of settings with seven mistakes': [
    {
      POWGATE_CONFIG_FILE: fileOf(
        'bad.conf',
        '# comment\nPOWGATE_TOKEN_SECONDS=eighty\nPOWGATE_LIMITS=3\nwhat is this\nLOG_LEVEL=info\nLOG_LEVEL=warn\ntoString=1\nHOST=::1 # all\nPOWGATE_DATA_DIR="a #1" # "b"\n',
      ),
    },
    ...[/line 3: POWGATE_LIMITS: there is no such setting/, /line 4: expected NAME=value$/],
    ...[/line 6: LOG_LEVEL: expected once$/, /line 7: toString: there is no such setting/],
    ...[/line 8: HOST: expected a comment on a line of its own/, /line 9: POWGATE_DATA_DIR: expected a comm/],
    /^POWGATE_TOKEN_SECONDS: expected an integer .*got "eighty"$/,
  ],
  'many mistakes at once': [
    {
      ...{ HOST: 'http://x', PORT: '70000', LOG_LEVEL: 'loud', POWGATE_DEMO: 'maybe', POWGATE_WORKER: '2' },
      POWGATE_LOG_LEVEL: 'debug',
      ...{ POWGATE_TOKEN_SECONDS: '0', POWGATE_CHALLENGE_SECONDS: '0x64', POWGATE_LOG_SUCCESSES: '2' },
      ...{ POWGATE_IPV6_PREFIX: '129', POWGATE_REDIS_PREFIX: 'a b', POWGATE_FAIL_OPEN: 'verify-token' },
      ...{ REDIS_URL: 'postgres://u:hunter2@h', POWGATE_SECRETS: 'hunter2,hunter3' },
      POWGATE_TRUSTED_PROXIES: '10.0.0.0/8, nginx',
    },
    /^POWGATE_WORKER: there is no such setting \(did you mean POWGATE_WORKERS\?\)$/,
    /^POWGATE_LOG_LEVEL: there is no such setting \(did you mean LOG_LEVEL\?\)$/,
    /^HOST: expected an IP address or a host name, got "http:\/\/x"$/,
    /^PORT: expected an integer from 0 to 65535, got "70000"$/,
    ...[/^POWGATE_IPV6_PREFIX: /, /^POWGATE_REDIS_PREFIX: /, /^POWGATE_FAIL_OPEN: expected challenge, verif/],
    ...[/^POWGATE_CHALLENGE_SECONDS: /, /^POWGATE_TOKEN_SECONDS: /, /^LOG_LEVEL: /],
    ...[/^POWGATE_LOG_SUCCESSES: /, /^POWGATE_DEMO: /],
    /^REDIS_URL: expected redis:\/\/host.*user:password@/,
    ...[/^POWGATE_SECRETS: secret 1 has 7 /, /^POWGATE_SECRETS: secret 2 has 7 /],
    /^POWGATE_TRUSTED_PROXIES: expected IP addresses and CIDRs.*got "nginx"$/,
  ],
}

describe('broken configurations', { concurrency: 3 }, () => {
  for (const [what, [env, ...problems]] of Object.entries(BROKEN)) {
    test(what, async () => {
      const run = await powgate.with(env).run('check')
      assert.equal(run.code, 1)
      assert.equal(run.problems.length, problems.length, run.err)
      for (const [index, problem] of problems.entries()) assert.match(run.problems[index]!, problem)
      assert.doesNotMatch(run.err + run.out, /hunter/, 'a secret is repeated')
      // Without the fact `sites`, check could not read the sites, so it must say nothing about them.
      const aboutSites = /^note: a backend may redeem|METRICS_SITES: there is no site/m
      const hasReadSites = /^ {2}sites /m.test(run.out)
      if (!hasReadSites) assert.doesNotMatch(run.err + run.out, aboutSites)
      assert.ok(!existsSync(dataDir), 'something was made')
    })
  }
})

test('a port whose server takes no connection, and whose queue is full: check says within a minute that the port is taken', async t => {
  const listen = "listen({ port: 0, host: '127.0.0.1', backlog: 1 },()=>console.log(server.address().port))"
  const stuck = spawn(process.execPath, ['-e', `const server = require('net').createServer().${listen}`])
  const port = Number((await once(stuck.stdout, 'data'))[0])
  stuck.kill('SIGSTOP')
  const queue = Array.from({ length: 8 }, () => connect(port, '127.0.0.1').on('error', () => {}))
  t.after(() => [stuck.kill('SIGKILL'), ...queue.map(socket => socket.destroy())])
  const startedAtMs = performance.now()
  const run = await powgate.with({ PORT: String(port) }).run('check')
  assert.match(run.problems.join(), /^PORT: cannot listen on .*: the port is taken$/)
  assert.ok(performance.now() - startedAtMs < 60_000, 'the kernel gives up after two minutes')
})

/** Ranges of trusted proxies on either side of each bound, and the warning about each; undefined for none. */
const RISKS: Readonly<Record<string, RegExp | undefined>> = {
  '10.42.0.0/16': undefined,
  '10.42.0.0/15': /is wide: every machine and container in it/,
  'fd00:1:2::/48': undefined,
  'fd00:1:2::/47': /is wide: every machine/,
  '127.0.0.0/8': undefined,
  '203.0.0.0/15': /is wide: everybody who has an address in it/,
  '0.0.0.0/1': /is wide: everybody/,
  '::ffff:203.0.0.0/111': /is wide: everybody/,
  '2001:db8:7::/47': /is wide: everybody/,
  '104.16.0.0/12': /is wide: everybody/,
  '173.245.48.0/20': /is shared by all customers of Cloudflare/,
  '2606:4700:10::1': /is shared by all customers of Cloudflare/,
  '151.101.64.0/24': /is shared by all customers of Fastly/,
}

describe('good configurations', () => {
  test('trusted ranges that many others can send from are warned of', async () => {
    const ranges = Object.entries(RISKS)
    const env = { POWGATE_TRUSTED_PROXIES: ranges.map(([range]) => range).join(',') }
    const { warnings } = JSON.parse(await powgate.with(env).text('check --json'))
    for (const [range, risk] of ranges) {
      const warning = warnings.find((text: string) => text.startsWith(`POWGATE_TRUSTED_PROXIES: ${range} `))
      if (risk === undefined) assert.equal(warning, undefined)
      else assert.match(warning, risk)
    }
  })

  test('a service that others can reach, and that trusts no proxy: a note in case one is in front; warnings of other settings', async () => {
    const PORT = String(await freePort())
    const env = { HOST: '0.0.0.0', PORT, POWGATE_METRICS_SITES, POWGATE_WORKERS: '256' }
    const text = await powgate.with(env).text('check')
    assert.match(text, /^warning: POWGATE_METRICS_SITES: there is no site site_0{22}$/m)
    assert.match(text, /^warning: POWGATE_WORKERS: 256 for \d+ cores/m)
    assert.match(text, /^note: no proxy is trusted: .* set POWGATE_TRUSTED_PROXIES$/m)
    assert.match(text, /^It would start; see the warnings\.$/m)
  })

  test('the variables that Kubernetes makes of Services are ignored', async () => {
    const ofServices = ['POWGATE', 'POWGATE_ADMIN', 'POWGATE_METRICS_V6'].flatMap((name, index) => [
      [`${name}_SERVICE_HOST`, ['10.43.7.1', '10.43.7.2', 'fd00:43::7'][index]],
      [`${name}_SERVICE_PORT`, '80'],
      [`${name}_SERVICE_PORT_HTTP_ALT`, '80'],
      ...(name === 'POWGATE_ADMIN' ? [] : [[`${name}_PORT`, 'tcp://10.43.7.1:80']]), // a setting
      [`${name}_PORT_80_TCP`, 'tcp://[fd00:43::7]:80'],
      [`${name}_PORT_80_TCP_PROTO`, 'tcp'],
      [`${name}_PORT_80_TCP_PORT`, '80'],
      [`${name}_PORT_80_TCP_ADDR`, 'fd00:43::7'],
      [`${name}_PORT_53_UDP_PROTO`, 'udp'],
    ])
    const env = { PORT: String(await freePort()), ...Object.fromEntries(ofServices) }
    assert.match(await powgate.with(env).text('check'), /^It would start/m)
  })

  test('before the first start: says in the order of go-live.md what would be made, and makes nothing', async () => {
    const text = await powgate.with({ PORT: String(await freePort()) }).text('check')
    const namesOfFacts = Array.from(text.matchAll(/^ {2}(.+?) {2,}/gm), ([, name]) => name)
    const settings = ['listens on', 'HTTP server', 'visitors are']
    const site = ['store', 'free space', 'sites', 'limits a minute', 'lifetimes']
    assert.deepEqual(namesOfFacts, ['secrets', ...settings, ...site, 'health, metrics'])
    const page = readFileSync(new URL('../../docs/go-live.md', import.meta.url), 'utf8')
    assert.match(page, /^## [^\n]*secret$.*^## [^\n]*settings$.*^## [^\n]*site, .*^## [^\n]*Watch/ms)
    assert.match(text, /^ {2}listens on +127\.0\.0\.1:\d+, with \d+ workers?$/m)
    assert.match(text, /^ {2}secrets +generated at the start$/m)
    assert.match(text, /^ {2}sites +none yet: .* for pages of this machine$/m)
    assert.match(text, /^warning: HOST is a loopback address.*POWGATE_TRUSTED_PROXIES$/m)
    assert.match(text, /^note: a backend may redeem 100 tokens a minute/m)
    assert.doesNotMatch(text, /there are no sites yet/, 'the start makes one')
    assert.ok(!existsSync(dataDir))
  })

  test('before the first start, in a data directory that commands have used, or a service whose files are gone', async () => {
    const dataDir = temporaryDir('used')
    const used = powgate.with({ PORT: String(await freePort()), POWGATE_DATA_DIR: dataDir })
    await used.text('site list') // makes an empty file
    assert.match(await used.text('check'), /^ {2}sites +none yet: unless you create one first, the /m)
    const { siteKey } = await used.json('site create --name shop')
    await used.text('site delete', siteKey, '--name', 'shop')
    assert.match(await used.text('check'), /^warning: there are no sites yet/m)
    const sites = join(dataDir, 'sites.jsonl')
    const torn = `${readFileSync(sites, 'utf8')}{"torn`
    writeFileSync(sites, torn)
    const { warnings } = JSON.parse(await used.text('check --json'))
    assert.match(warnings.join('\n'), /^of the sites' file, line 3, .* not whole, and the next start /m)
    assert.deepEqual([readFileSync(sites, 'utf8'), existsSync(`${sites}.dropped`)], [torn, false])

    writeFileSync(join(dataDir, 'service-url'), '') // as a service that ran here leaves it
    const secretGone = /^warning: POWGATE_DATA_DIR: the secret .*: it is gone\. Put b/m
    assert.match(await used.text('check'), secretGone)
    rmSync(sites)
    for (const command of ['site list', 'site create --name shop', 'check'])
      assert.match((await used.run(command)).err, /missing or has no sites.* put it back/, command)
  })

  test('beside the running service: its scripts run, its ports are its own, its sites are counted', async () => {
    const wide = ['10.0.0.0/15', '2001:db8::/31']
    const origins = ['https://*.vercel.app', 'https://*.shop.example']
    await service.createSite({ known: { networks: ['10.2.0.0/16', '2001:db9::/32', ...wide] }, origins })
    const isRoot = process.getuid!() === 0
    if (isRoot) chownSync(service.dataDir, 4242, 4242) // as if another user's service had made it
    const report = JSON.parse(await new Powgate(service.env).text('check --json'))
    assert.equal(report.ok, true)
    assert.deepEqual(report.problems, [])
    const asRoot = report.warnings.filter((text: string) => text.endsWith("sudo -u '#4242'"))
    assert.equal(asRoot.length, isRoot ? 1 : 0, 'root may use what the service may not')
    const known = / known network (\S+) is wide/
    const found = report.warnings.flatMap((text: string) => known.exec(text)?.[1] ?? [])
    assert.deepEqual(found, wide)
    const claimable = report.warnings.filter((text: string) => text.includes('anybody can get a name'))
    assert.equal(claimable.length, 1)
    assert.match(claimable[0], /below vercel\.app that matches https:\/\/\*\.vercel\.app/)
    assert.match(report.facts.scripts, /^run: /)
    assert.match(report.facts.sites, /^4 active, 0 disabled$/, 'two of the demo, and the first')
    const first = /^1 from the environment; the first signs: key id \d+, SHA-256 [0-9a-f]{16}\.\.\.$/
    assert.match(report.facts.secrets, first)
    for (const port of [service.port, service.env.POWGATE_ADMIN_PORT])
      assert.ok(report.notes.includes(`port ${port} is in use by this service, which runs already`))
  })

  test('beside a running service that is not well: a warning of each thing that its dashboard tells', async t => {
    const answer =
      '{"nonce":"","ok":false,"service":{"isReady":false,"isReloadDone":false,"storeCauses":["refused"],"differences":["it differs"]}}'
    const servers = [1, 2].map(() => createHttpServer((_, response) => response.end(answer)))
    const [PORT = '', POWGATE_ADMIN_PORT = ''] = (await Promise.all(servers.map(listenAnywhere))).map(String)
    t.after(() => servers.map(server => server.close()))
    const { warnings } = JSON.parse(await powgate.with({ PORT, POWGATE_ADMIN_PORT }).text('check --json'))
    for (const told of [/: nothing listens at /, / is not ready: /, /: it differs$/m, /^the last SIGHUP /m])
      assert.match(warnings.join('\n'), told)
    // One that waits for its store has no port yet.
    const besideWaiting = powgate.with({ PORT: String(await freePort()), POWGATE_ADMIN_PORT })
    assert.deepEqual((await besideWaiting.run('check')).problems, [])
  })

  test('beside the running service: what its dashboard says of backends', async () => {
    const service = await TestService.start('embedded', { POWGATE_ADMIN_PORT: String(await freePort()) })
    const { apiKey } = await service.createSite()
    const junk = 60 // over half of the 100 that a backend's address may send, from which on it is told
    for (let sent = 0; sent < junk; sent++)
      await new Client(service.url).verifyToken(apiKey, { token: 'junk' })
    await eventually(60_000, 'a warning', async () => {
      const { warnings } = JSON.parse(await new Powgate(service.env).text('check --json'))
      return warnings.some((text: string) => / tokens a minute for /.test(text))
    })
  })

  test('beside the running service on Redis, before and after it has a site', async () => {
    const service = await TestService.start('redis')
    // As `npm run powgate` sets it in a clone; hints then name that command. It is read once in a process.
    const clone = new Powgate({ ...service.env, npm_lifecycle_event: 'powgate' }, { isAlone: true })
    const report = JSON.parse(await clone.text('check --json'))
    assert.deepEqual(report.problems, [])
    const warnings = report.warnings.join('\n')
    assert.match(warnings, /^there are no sites yet in .* npm run -s powgate -- site .* lost them, restart/m)
    assert.match(warnings, /^POWGATE_ADMIN_PORT is not set: if Redis loses sites/m)
    assert.match(await new Powgate(service.env).text('site list'), /If Redis has lost them, restart nothing/)
    assert.ok(report.notes.includes(`port ${service.port} is in use by this service, which runs already`))
    const isOfLimit = (note: string) => /^a backend may redeem 100 tokens .* npm run -s/.test(note)
    assert.ok(report.notes.some(isOfLimit))
    await service.createSite({ limits: { redeem: 5000 } })
    const { notes } = JSON.parse(await new Powgate(service.env).text('check --json'))
    assert.ok(!notes.some(isOfLimit), 'its limit was chosen')
  })

  test('check with Redis, and settings and secrets from files, prints a warning for each risk', async () => {
    const redis = await RedisServer.start(['--maxmemory', '100mb', '--maxmemory-policy', 'allkeys-lru'])
    const secrets = fileOf('secrets', `${TEST_SECRET}\nan older secret which also verifies what it signed\n`)
    const config = fileOf(
      'powgate.conf',
      `export PORT=${await freePort()}\nREDIS_URL="${redis.url}"\nPOWGATE_SECRETS_FILE=${secrets}\nPOWGATE_TEST_KEYS=on\nPOWGATE_FAIL_OPEN=verify, challenge\nPOWGATE_ADMIN_HOST=0.0.0.0\nPOWGATE_ADMIN_PORT=${await freePort()}\n`,
    )
    const report = JSON.parse(await powgate.text('check --config', config, '--json'))
    assert.match(report.facts.secrets, /^2 from a file; the first signs/)
    assert.match(report.facts.store, /^Redis at 127\.0\.0\.1:\d+/)
    assert.match(report.facts.scripts, /^run: /)
    assert.equal(report.facts['without Redis'], '/challenge, /verify go on from memory')
    const keys = (await redis.ask('keys', '*')) as string[]
    const lasting: string[] = []
    for (const key of keys) {
      const restMs = Number(await redis.ask('pttl', key)) // below 0: it never expires
      assert.ok(restMs <= 300_000, key)
      if (restMs < 0) lasting.push(key.slice(key.lastIndexOf(':') + 1))
    }
    assert.deepEqual(lasting.sort(), ['count', 'epoch', 'look'], 'as any first service makes them')
    const warnings = report.warnings.join('\n')
    for (const risk of ['maxmemory-policy allkeys-lru', 'POWGATE_TEST_KEYS is on', 'HOST is no loopback'])
      assert.ok(warnings.includes(risk), risk)
  })
})

/** docs/howto/growing.md, followed to the letter: from one host to two and back, while visitors come and fill in forms. */

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Powgate } from '../cli/cli-process.ts'
import { Client, solutionOf, solve } from '../harness/client.ts'
import { eventually } from '../harness/eventually.ts'
import { answerOrWait, freshAddress } from '../harness/http.ts'
import { freePort } from '../harness/ports.ts'
import { FrontProxy, PROXY_ADDRESS, sample } from '../harness/proxies.ts'
import { RedisServer } from '../harness/redis.ts'
import { EASY, TEST_SECRET, TestService, type TestSite } from '../harness/service.ts'
import { temporaryDir } from '../harness/temporary.ts'

const read = (page: string) => readFileSync(new URL(`../../${page}`, import.meta.url), 'utf8')
const [FIRST, SECOND] = ['127.0.0.5', '127.0.0.6']
/** Visits a second; the longest time for which a form is filled in; the time after which a call that is not served is given up. */
const [RATE, FORM_MS_MAX, GIVE_UP_MS] = [4, 30_000, 30_000]
/** Long enough that forms of every age are open when the store moves. */
const BETWEEN_MS = 12_000
const MOVES = 2 // of the store: to Redis, and back

/** A host with the files of the page in a folder of its own. */
class Host {
  readonly service: TestService
  readonly etc: string
  nginx: FrontProxy | undefined
  /** What the page writes, and what stands for it here. */
  readonly #names: Readonly<Record<string, string>>

  constructor(name: string, port: number, adminPort: number, redisUrl: string) {
    this.etc = temporaryDir(name)
    const file = { POWGATE_CONFIG_FILE: join(this.etc, 'powgate.conf') }
    const inTheFile = { POWGATE_SECRETS: '', HOST: '', POWGATE_TRUSTED_PROXIES: '' }
    const env = { ...file, ...inTheFile, POWGATE_ADMIN_PORT: String(adminPort) }
    this.service = TestService.prepare(env, port)
    this.#names = {
      '/etc/nginx/conf.d/powgate.conf': join(this.etc, 'nginx.conf'),
      '/var/lib/powgate': this.service.dataDir,
      '/etc/powgate': this.etc,
      'redis://10.0.0.7:6379': redisUrl,
      'TRUSTED_PROXIES=127.0.0.1': `TRUSTED_PROXIES=${FIRST}`, // from where nginx calls, on this machine as on that
      '10.0.0.5': FIRST,
      '10.0.0.6': SECOND,
      '10.0.3.7': PROXY_ADDRESS,
      ':8080': `:${port}`,
      'sudo -u powgate ': '',
      'chown root:powgate': 'ls', // there is no such user
      ' -g powgate': '',
      ' sites.json': ` ${join(this.etc, 'sites.json')}`,
    }
  }

  /** As docs/go-live.md leaves it, nginx before it. */
  async goLive(): Promise<void> {
    const settings = read('docs/go-live.md').match(/^ *HOST=[\s\S]*?(?= *```)/m)![0]
    writeFileSync(join(this.etc, 'powgate.conf'), this.#adapted(settings.replace(/^ +/gm, '')))
    writeFileSync(join(this.etc, 'secrets'), TEST_SECRET)
    const server = /^ *server 127\S*;/m.exec(sample('nginx', 'server 127.0.0.1:8080'))![0]
    const port = await freePort()
    writeFileSync(join(this.etc, 'nginx.conf'), this.#adapted(nginxConfig(port, server, FIRST)))
    await this.service.boot()
    this.nginx = await FrontProxy.run('nginx', port, `include ${this.etc}/nginx.conf*;`)
  }

  /** Runs the commands of a block, one a line; `&&` joins those of a line. */
  async follow(block: string): Promise<void> {
    const lines = block.split('\n').filter(text => !/^(#|\s*$)/.test(text))
    for (const command of lines.flatMap(line => line.split(' && '))) await this.#run(command)
  }

  async #run(written: string): Promise<void> {
    const command = this.#adapted(written)
    const [, how = '', what] = /^systemctl (\w+)(?: --now)? (\w+)$/.exec(command) ?? []
    if (what === 'nginx') return this.nginx!.reload()
    if (/^(stop|disable|restart)$/.test(how)) assert.equal(await this.service.end(), 0)
    if (/^(enable|restart)$/.test(how)) await this.service.boot()
    if (how === 'reload') await this.#reload()
    if (what !== undefined) return
    const [typed = '', file] = command.split(' > ')
    const [call = '', input] = typed.split(' < ') // the shell opens them, perhaps as another user
    if (!command.startsWith('powgate ')) execFileSync('sh', ['-c', command])
    else {
      const given = input === undefined ? '' : readFileSync(input, 'utf8')
      const { code, out, err } = await new Powgate({}).runWithInput(given, call.slice('powgate '.length))
      assert.equal(code, 0, `${command}\n${out}${err}`)
      if (file !== undefined) writeFileSync(file, out)
    }
  }

  async #reload(): Promise<void> {
    const { length } = this.service.output
    process.kill(this.service.pid, 'SIGHUP')
    const isDone = () => this.service.output.includes('all workers are new', length)
    await eventually(60_000, 'all workers are new', isDone)
  }

  #adapted(written: string): string {
    return Object.entries(this.#names).reduce((all, [name, own]) => all.replaceAll(name, own), written)
  }
}

test('the page is followed there and back: visits whose forms are open meanwhile are verified once more, none is lost, and none counts twice', async t => {
  const page = read('docs/howto/growing.md')
  const blocks = [...page.matchAll(/^ *```sh\n *# on the (\w+) host\n([\s\S]*?)```$/gm)]
  const redis = await RedisServer.start(['--maxmemory', '100mb', '--appendonly', 'yes'])
  t.after(() => redis.stop())
  const hosts = [
    new Host('first', await freePort(), await freePort(), redis.url),
    new Host('second', await freePort(), await freePort(), redis.url),
  ]
  t.after(() => Promise.all(hosts.map(({ service }) => service.stop())))
  const [first, second] = hosts as [Host, Host]
  await first.goLive()
  t.after(() => first.nginx!.stop())
  const site = await first.service.createSite({ difficulty: EASY, limits: { redeem: 10_000 } })
  const servers = [FIRST, SECOND].map(
    (at, index) => `server ${at}:${hosts[index]!.service.port} max_fails=0;`,
  )
  const port = await freePort()
  const balancer = await FrontProxy.run('nginx', port, nginxConfig(port, servers.join(' '), PROXY_ADDRESS))
  t.after(() => balancer.stop())
  const name = { client: new Client(first.nginx!.url) }

  const visits: Promise<Outcome>[] = []
  let goesOn = true
  t.after(() => (goesOn = false))
  const comes = (async () => {
    for (; goesOn; await sleep(1000 / RATE)) visits.push(visit(name, site, 0))
  })()
  let isSecondReady = false
  for (const [, host, block] of blocks) {
    if (block!.includes('rm /etc/nginx')) name.client = new Client(balancer.url)
    if (/systemctl (re|disable)/.test(block!)) await sleep(BETWEEN_MS)
    if (host === 'second' && !isSecondReady) {
      for (const name of ['powgate.conf', 'secrets'])
        copyFileSync(join(first.etc, name), join(second.etc, name))
      const conf = join(second.etc, 'powgate.conf')
      writeFileSync(conf, readFileSync(conf, 'utf8').replaceAll(first.etc, second.etc))
      isSecondReady = true
    }
    await (host === 'first' ? first : second).follow(block!.replace(/^ {3}/gm, ''))
  }
  await sleep(BETWEEN_MS)
  goesOn = false
  await comes
  const ended = await Promise.all(visits)
  const lost = ended.filter(outcome => typeof outcome === 'string')
  const again = ended.filter(outcome => outcome !== 0).length - lost.length
  t.diagnostic(`${ended.length} visits, ${lost.length} lost, ${again} verified once more`)
  assert.deepEqual(lost, [])
  assert.ok(again > 0)
  assert.equal(blocks.length, 10, 'blocks of the page')
  assert.ok(ended.length > 3 * RATE * (BETWEEN_MS / 1000), String(ended.length))
})

/** As docs/howto/nginx.md has it for two hosts. @param from the address from where it calls them */
const nginxConfig = (port: number, servers: string, from: string) => `
  upstream powgate { zone powgate 64k; least_conn; ${servers} keepalive 64; keepalive_timeout 6s; }
  server { listen 127.0.0.1:${port}; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_bind ${from};
    proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for; proxy_connect_timeout 1s; proxy_read_timeout 2s;
    proxy_next_upstream error timeout non_idempotent; error_page 502 504 = @away;
    location / { proxy_pass http://powgate; }
    location @away { default_type application/json; add_header Retry-After 1 always; return 503 '{}'; } }`

/** Why a visit was lost; else how often its person was verified once more, until a token was redeemed, and refused the second time. */
type Outcome = string | number

/** @param name where it leads may change meanwhile */
async function visit(name: { client: Client }, site: TestSite, timesBefore: number): Promise<Outcome> {
  const { siteKey, apiKey } = site
  const from = freshAddress()
  const giveUpMs = performance.now() + GIVE_UP_MS
  let last = 'no answer'
  while (performance.now() < giveUpMs) {
    const challenge = await answerOrWait(() => name.client.challenge(siteKey, { from }))
    if (challenge === undefined || challenge.status === 503) continue
    if (challenge.status !== 200) return `/challenge: ${challenge.text}`
    const { nonce, difficulty } = challenge.json
    const body = solutionOf(nonce, solve(nonce, difficulty))
    const isWaiting = Math.random() < 0.5 // half of them solve before the move and submit after it
    if (isWaiting) await sleep(Math.random() * 4000)
    const verified = await answerOrWait(() => name.client.verify(siteKey, body, { from }))
    if (verified?.status === 503 || verified?.json?.code === 'invalid-nonce') continue
    if (verified?.status !== 200) return `/verify: ${verified?.text ?? 'no answer'}`
    await sleep(Math.random() * FORM_MS_MAX)
    const { token } = verified.json
    const redeem = (idempotencyKey: string) =>
      answerOrWait(() => name.client.verifyToken(apiKey, { token, idempotencyKey }))
    for (const endMs = performance.now() + GIVE_UP_MS; performance.now() < endMs; ) {
      const redeemed = await redeem(nonce)
      last = redeemed?.text ?? last
      if (redeemed?.status === 503 || redeemed === undefined) continue
      const isForgotten = redeemed.json.code === 'token-forgotten' && timesBefore < MOVES
      if (isForgotten) return visit(name, site, timesBefore + 1)
      if (redeemed.status !== 200) return `/verify-token: ${redeemed.text}`
      const again = await redeem('other')
      return again?.json?.success === true ? `redeemed twice: ${token}` : timesBefore
    }
  }
  return `gave up: ${last}`
}

/** Runs the commands of docs/howto/growing.md as written, from one host to two and back, while visitors fill in forms: no visit is lost. */

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { copyFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
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
const VISITS_A_SECOND = 4
/** A form is filled in for at most so long; a call that nobody serves is repeated for so long. */
const [FORM_MS_MAX, GIVE_UP_MS] = [30_000, 30_000]
/** The pause before each restart: long enough that forms of every age are open when the store moves. */
const PAUSE_MS = 12_000

/** A host with the files of the page in a folder of its own. */
class Host {
  readonly address: string
  readonly service: TestService
  readonly etc: string
  nginx: FrontProxy | undefined
  /** Texts of the page, and what stands for them on this machine. */
  readonly #replacements: Readonly<Record<string, string>>

  constructor(address: string, port: number, adminPort: number, redisUrl: string) {
    this.address = address
    this.etc = temporaryDir('etc')
    const file = { POWGATE_CONFIG_FILE: join(this.etc, 'powgate.conf') }
    // Empty in the environment, where they would go before the file: so the file's hold.
    const setByFile = { POWGATE_SECRETS: '', HOST: '', POWGATE_TRUSTED_PROXIES: '' }
    const env = { ...file, ...setByFile, POWGATE_ADMIN_PORT: String(adminPort) }
    this.service = TestService.prepare(env, port)
    this.#replacements = {
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
    // With the star nginx can also load its configuration again when the page has removed the file.
    this.nginx = await FrontProxy.run('nginx', port, `include ${this.etc}/nginx.conf*;`)
  }

  /** Runs the commands of a block, one a line; `&&` joins those of a line. */
  async follow(block: string): Promise<void> {
    const lines = block.split('\n').filter(text => !/^(#|\s*$)/.test(text))
    for (const command of lines.flatMap(line => line.split(' && '))) await this.#run(command)
  }

  async #run(written: string): Promise<void> {
    const command = this.#adapted(written)
    const [, action = '', unit] = /^systemctl (\w+)(?: --now)? (\w+)$/.exec(command) ?? []
    if (unit === 'nginx') return this.nginx!.reload()
    if (unit === 'powgate') return this.#systemctl(action)
    if (!command.startsWith('powgate ')) return void execFileSync('sh', ['-c', command])
    const [callAndInput = '', outputFile] = command.split(' > ')
    const [call = '', inputFile] = callAndInput.split(' < ')
    const input = inputFile === undefined ? '' : readFileSync(inputFile, 'utf8')
    const { code, out, err } = await new Powgate({}).runWithInput(input, call.slice('powgate '.length))
    assert.equal(code, 0, `${command}\n${out}${err}`)
    if (outputFile !== undefined) writeFileSync(outputFile, out)
  }

  async #systemctl(action: string): Promise<void> {
    if (/^(stop|disable|restart)$/.test(action)) assert.equal(await this.service.end(), 0)
    if (/^(enable|restart)$/.test(action)) await this.service.boot()
    if (action !== 'reload') return
    const { length } = this.service.output
    process.kill(this.service.pid, 'SIGHUP')
    const isDone = () => this.service.output.includes('all workers are new', length)
    await eventually(60_000, 'all workers are new', isDone)
  }

  #adapted(written: string): string {
    const replacements = Object.entries(this.#replacements)
    return replacements.reduce((text, [theirs, ours]) => text.replaceAll(theirs, ours), written)
  }
}

test('the page is followed there and back: visits whose forms are open meanwhile are verified once more, none is lost, and none counts twice', async t => {
  const page = read('docs/howto/growing.md')
  const blocks = [...page.matchAll(/^ *```sh\n *# on the (\w+) host\n([\s\S]*?)```$/gm)]
  const redis = await RedisServer.start(['--maxmemory', '100mb', '--appendonly', 'yes'])
  const first = new Host(FIRST, await freePort(), await freePort(), redis.url)
  const second = new Host(SECOND, await freePort(), await freePort(), redis.url)
  await first.goLive()
  const site = await first.service.createSite({ difficulty: EASY, limits: { redeem: 10_000 } })
  const servers = [first, second].map(
    ({ address, service }) => `server ${address}:${service.port} max_fails=0;`,
  )
  const port = await freePort()
  const balancer = await FrontProxy.run('nginx', port, nginxConfig(port, servers.join(' '), PROXY_ADDRESS))
  const entrance = { client: new Client(first.nginx!.url) } // where the service's name leads

  const visits: Promise<Outcome>[] = []
  let visitorsCome = true
  t.after(() => (visitorsCome = false))
  const arrivals = (async () => {
    for (; visitorsCome; await sleep(1000 / VISITS_A_SECOND)) visits.push(visit(entrance, site, 0))
  })()
  const secondConf = join(second.etc, 'powgate.conf')
  for (const [, host, block] of blocks) {
    // "Let the name lead to the balancer" comes before these commands.
    if (block!.includes('rm /etc/nginx')) entrance.client = new Client(balancer.url)
    if (/systemctl (restart|reload|disable)/.test(block!)) await sleep(PAUSE_MS)
    if (host === 'second' && !existsSync(secondConf)) {
      // "Copy all files of `/etc/powgate` there": here each host has a folder that stands for it.
      for (const name of ['powgate.conf', 'secrets'])
        copyFileSync(join(first.etc, name), join(second.etc, name))
      writeFileSync(secondConf, readFileSync(secondConf, 'utf8').replaceAll(first.etc, second.etc))
    }
    await (host === 'first' ? first : second).follow(block!.replace(/^ {3}/gm, ''))
  }
  await sleep(PAUSE_MS)
  visitorsCome = false
  await arrivals
  const outcomes = await Promise.all(visits)
  const lost = outcomes.filter(outcome => typeof outcome === 'string')
  const verifiedAgain = outcomes.filter(outcome => typeof outcome === 'number' && outcome > 0)
  t.diagnostic(`${outcomes.length} visits, ${lost.length} lost, ${verifiedAgain.length} verified once more`)
  assert.deepEqual(lost, [])
  assert.ok(verifiedAgain.length > 0)
  assert.equal(blocks.length, 10, 'blocks of the page')
  assert.ok(outcomes.length > 3 * VISITS_A_SECOND * (PAUSE_MS / 1000), String(outcomes.length))
})

/** As docs/howto/nginx.md has it for two hosts. @param from the address from where it calls them */
const nginxConfig = (port: number, servers: string, from: string) => `
  upstream powgate { zone powgate 64k; least_conn; ${servers} keepalive 64; keepalive_timeout 6s; }
  server { listen 127.0.0.1:${port}; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_bind ${from};
    proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for; proxy_connect_timeout 1s; proxy_read_timeout 2s;
    proxy_next_upstream error timeout non_idempotent; error_page 502 504 = @away;
    location / { proxy_pass http://powgate; }
    location @away { default_type application/json; add_header Retry-After 1 always; return 503 '{}'; } }`

/** A text says why a visit was lost. A number says how often its person was verified again before a token was redeemed, just once. */
type Outcome = string | number

/** @param entrance may change during the visit @param timesAgain how often the person was verified again already */
async function visit(entrance: { client: Client }, site: TestSite, timesAgain: number): Promise<Outcome> {
  const { siteKey, apiKey } = site
  const from = freshAddress()
  const giveUpMs = performance.now() + GIVE_UP_MS
  while (performance.now() < giveUpMs) {
    const challenge = await answerOrWait(() => entrance.client.challenge(siteKey, { from }))
    if (challenge === undefined || challenge.status === 503) continue
    if (challenge.status !== 200) return `/challenge: ${challenge.text}`
    const { nonce, difficulty } = challenge.json
    const body = solutionOf(nonce, solve(nonce, difficulty))
    if (Math.random() < 0.5) await sleep(Math.random() * 4000) // so that some solve before a restart and submit after it
    const verified = await answerOrWait(() => entrance.client.verify(siteKey, body, { from }))
    if (verified?.status === 503 || verified?.json?.code === 'invalid-nonce') continue
    // Without an answer the nonce may be spent, so asking again would not help.
    if (verified?.status !== 200) return `/verify: ${verified?.text ?? 'no answer'}`
    await sleep(Math.random() * FORM_MS_MAX)
    const { token } = verified.json
    const redeem = (idempotencyKey: string) =>
      answerOrWait(() => entrance.client.verifyToken(apiKey, { token, idempotencyKey }))
    let last = 'no answer'
    for (const endMs = performance.now() + GIVE_UP_MS; performance.now() < endMs; ) {
      const redeemed = await redeem(nonce)
      last = redeemed?.text ?? last
      if (redeemed?.status === 503 || redeemed === undefined) continue
      // The store moves to Redis, and back: each move makes a visit's token forgotten once at most.
      const isForgotten = redeemed.json.code === 'token-forgotten' && timesAgain < 2
      if (isForgotten) return visit(entrance, site, timesAgain + 1)
      if (redeemed.status !== 200) return `/verify-token: ${redeemed.text}`
      const second = await redeem('other')
      return second?.json?.success === true ? `redeemed twice: ${token}` : timesAgain
    }
    return `/verify-token: gave up: ${last}`
  }
  return 'gave up before a token'
}

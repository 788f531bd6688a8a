/** docs/howto/growing.md, followed to the letter: from one host to two and back, while visitors come and fill in forms. */

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Powgate } from '../cli/cli-process.ts'
import { Client, solutionOf, solve } from '../harness/client.ts'
import { answerOrWait, freshAddress } from '../harness/http.ts'
import { freePort } from '../harness/ports.ts'
import { FrontProxy, PROXY_ADDRESS } from '../harness/proxies.ts'
import { RedisServer } from '../harness/redis.ts'
import { EASY, TestService, type TestSite } from '../harness/service.ts'
import { temporaryDir } from '../harness/temporary.ts'

const PAGE = new URL('../../docs/howto/growing.md', import.meta.url).pathname
/** Visits a second; the longest time for which a form is filled in; the time after which a call that is not served is given up. */
const [RATE, FORM_MS_MAX, GIVE_UP_MS] = [4, 30_000, 30_000]
/** Long enough that forms of every age are open when the store moves. */
const BETWEEN_MS = 12_000
const MOVES = 2 // of the store: to Redis, and back

/** A host with the files of the page in a folder of its own. */
class Host {
  readonly service: TestService
  readonly etc: string
  /** What the page writes, and what stands for it here. */
  readonly #names: Readonly<Record<string, string>>

  constructor(name: string, port: number, redisUrl: string) {
    this.etc = temporaryDir(name)
    const config = join(this.etc, 'powgate.conf')
    this.service = TestService.prepare({ POWGATE_CONFIG_FILE: config, POWGATE_SECRETS: '', HOST: '' }, port)
    const first = {
      HOST: '127.0.0.1',
      POWGATE_TRUSTED_PROXIES: PROXY_ADDRESS,
      POWGATE_DATA_DIR: this.service.dataDir,
    }
    writeFileSync(
      config,
      Object.entries(first)
        .map(line => `${line.join('=')}\n`)
        .join(''),
    )
    this.#names = {
      '/var/lib/powgate': this.service.dataDir,
      '/etc/powgate': this.etc,
      'redis://10.0.0.7:6379': redisUrl,
      '10.0.0.5': '127.0.0.1',
      '10.0.0.6': '127.0.0.1',
      '10.0.3.7': PROXY_ADDRESS,
      ' -g powgate': '',
      ' sites.json': ` ${join(this.etc, 'sites.json')}`,
    }
  }

  /** Runs the commands of a block, one a line; `&&` joins those of a line. */
  async follow(block: string): Promise<void> {
    for (const line of block
      .trim()
      .split('\n')
      .filter(text => !text.startsWith('#')))
      for (const command of line.split(' && ')) await this.#run(command)
  }

  async #run(written: string): Promise<void> {
    const command = Object.entries(this.#names).reduce(
      (all, [name, own]) => all.replaceAll(name, own),
      written,
    )
    const [, how] = /^systemctl (\w+) powgate$/.exec(command) ?? []
    if (how === 'stop' || how === 'restart') assert.equal(await this.service.end(), 0)
    if (how === 'start' || how === 'restart') await this.service.boot()
    if (how !== undefined) return
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
}

test('the page is followed there and back: visits whose forms are open meanwhile are verified once more, none is lost, and none counts twice', async t => {
  const page = readFileSync(PAGE, 'utf8')
  const blocks = [...page.matchAll(/^ *```sh\n *# on the (\w+) host\n([\s\S]*?)```$/gm)]
  const redis = await RedisServer.start(['--maxmemory', '100mb', '--appendonly', 'yes'])
  t.after(() => redis.stop())
  const hosts = [
    new Host('first', await freePort(), redis.url),
    new Host('second', await freePort(), redis.url),
  ]
  t.after(() => Promise.all(hosts.map(({ service }) => service.stop())))
  const [first, second] = hosts as [Host, Host]
  await first.service.boot()
  const site = await first.service.createSite({ difficulty: EASY, limits: { redeem: 10_000 } })
  const balancer = await startBalancer(hosts.map(({ service }) => service.port))
  t.after(() => balancer.stop())

  const visits: Promise<Outcome>[] = []
  let goesOn = true
  const comes = (async () => {
    for (; goesOn; await sleep(1000 / RATE)) visits.push(visit(balancer.url, site, 0))
  })()
  let isSecondReady = false
  for (const [, host, block] of blocks) {
    if (/systemctl (stop|restart)/.test(block!)) await sleep(BETWEEN_MS)
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
  assert.equal(blocks.length, 8, 'blocks of the page')
  assert.ok(ended.length > 3 * RATE * (BETWEEN_MS / 1000), String(ended.length))
})

/** As docs/reference/proxies.md has it for two hosts. */
async function startBalancer(ports: readonly number[]): Promise<FrontProxy> {
  const port = await freePort()
  return FrontProxy.run(
    'nginx',
    port,
    `upstream powgate { zone powgate 64k; least_conn;
      ${ports.map(one => `server 127.0.0.1:${one} max_fails=0;`).join(' ')} keepalive 64; keepalive_timeout 6s; }
    server { listen 127.0.0.1:${port}; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_bind ${PROXY_ADDRESS};
      proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for; proxy_connect_timeout 1s; proxy_read_timeout 2s;
      proxy_next_upstream error timeout non_idempotent; error_page 502 504 = @away;
      location / { proxy_pass http://powgate; }
      location @away { default_type application/json; add_header Retry-After 1 always; return 503 '{}'; } }`,
  )
}

/** Why a visit was lost; else how often its person was verified once more, until a token was redeemed, and refused the second time. */
type Outcome = string | number

async function visit(url: string, site: TestSite, timesBefore: number): Promise<Outcome> {
  const { siteKey, apiKey } = site
  const from = freshAddress()
  const client = new Client(url)
  const giveUpMs = performance.now() + GIVE_UP_MS
  let last = 'no answer'
  while (performance.now() < giveUpMs) {
    const challenge = await answerOrWait(() => client.challenge(siteKey, { from }))
    if (challenge?.status !== 200) continue
    const { nonce, difficulty } = challenge.json
    const body = solutionOf(nonce, solve(nonce, difficulty))
    const isWaiting = Math.random() < 0.5 // half of them solve before the move and submit after it
    if (isWaiting) await sleep(Math.random() * 4000)
    const verified = await answerOrWait(() => client.verify(siteKey, body, { from }))
    if (verified?.status === 503 || verified?.json?.code === 'invalid-nonce') continue
    if (verified?.status !== 200) return `/verify: ${verified?.text ?? 'no answer'}`
    await sleep(Math.random() * FORM_MS_MAX)
    const { token } = verified.json
    for (const endMs = performance.now() + GIVE_UP_MS; performance.now() < endMs; ) {
      const redeemed = await answerOrWait(() => client.verifyToken(apiKey, { token, idempotencyKey: nonce }))
      last = redeemed?.text ?? last
      if (redeemed?.status === 503 || redeemed === undefined) continue
      const isForgotten = redeemed.json.code === 'token-forgotten' && timesBefore < MOVES
      if (isForgotten) return visit(url, site, timesBefore + 1)
      if (redeemed.status !== 200) return `/verify-token: ${redeemed.text}`
      const again = await answerOrWait(() => client.verifyToken(apiKey, { token, idempotencyKey: 'other' }))
      return again?.json?.success === true ? `redeemed twice: ${token}` : timesBefore
    }
  }
  return `gave up: ${last}`
}

/** The demo page and its backend over HTTP: when they are served, which forms are accepted, and the messages. */

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { after, afterEach, before, describe, test } from 'node:test'
import { DEMO_SITE_KEYS, demoApiKey } from '../../src/demo/site.ts'
import { CONTRACT_LIMITS } from '../../src/domain/endpoint.ts'
import { PUZZLES } from '../../src/protocol/proof.ts'
import { Client, HONEST_ENVIRONMENT } from '../harness/client.ts'
import { type Answer, type Call, call, freshAddress } from '../harness/http.ts'
import { startObserved } from '../harness/metrics.ts'
import { childPids, leftovers } from '../harness/processes.ts'
import { TEST_SECRET, TestService, type TestSite } from '../harness/service.ts'

const CONTENT_SECURITY_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; frame-src 'self'; worker-src 'self'; img-src 'self' data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

/** One site is for SHA-256, the other for HashWX. */
const [DEMO_SITE_KEY, HASHWX_SITE_KEY] = [...DEMO_SITE_KEYS] as [string, string]

const DEMO_PATHS = ['/demo', '/demo/demo.css', '/demo/demo.js', '/demo/submit']

function submit(service: TestService, fields: Record<string, string> | string, options: Call = {}) {
  const type = { 'Content-Type': 'application/x-www-form-urlencoded;charset=UTF-8' }
  const body = typeof fields === 'string' ? fields : new URLSearchParams(fields).toString()
  const headers = { ...type, ...options.headers }
  return call(`${service.url}/demo/submit`, { ...options, method: 'POST', headers, body })
}

function shownBy({ text }: Answer) {
  const unescaped = (html: string) =>
    html.replace(/&#(\d+);/g, (_, code) => String.fromCharCode(Number(code)))
  const [, look] = /<section class="result (\w+)">/.exec(text)!
  const [, redeemed] = /<pre[^>]*><code>([^<]*)/.exec(text) ?? []
  return {
    accepted: look === 'accepted',
    code: /<p>[^<]*<code>([^<]*)/.exec(text)?.[1],
    answer: redeemed === undefined ? undefined : JSON.parse(unescaped(redeemed)),
  }
}

function assertPage(answer: Answer, status: number): void {
  assert.equal(answer.status, status)
  assert.equal(answer.headers['content-type'], 'text/html; charset=utf-8')
  assert.equal(answer.headers['content-security-policy'], CONTENT_SECURITY_POLICY)
  assert.equal(answer.headers['cache-control'], 'no-store')
  assert.equal(answer.headers['x-content-type-options'], 'nosniff')
  assert.match(answer.text, /^<!doctype html>\n<html lang="en">/)
  // What the policy would not let run, and addresses that would not survive a proxy's path.
  assert.doesNotMatch(answer.text, /<style|<script(?! src=)| style=| on\w+=|(?:src|href|action)="\//)
}

async function siteNames(service: TestService): Promise<string[]> {
  const store = await service.openSites()
  const sites = await store.listSites().finally(() => store.close())
  return sites.map(({ name }) => name).sort()
}

describe('with POWGATE_DEMO=on', () => {
  let service: TestService
  let client: Client
  before(async () => {
    service = await TestService.start('embedded', { POWGATE_DEMO: 'on' })
    await service.untilReady()
    client = new Client(service.url)
  })
  after(() => service.stop())

  test('the page, its style sheet and its script', async () => {
    const page = await call(`${service.url}/demo`)
    assertPage(page, 200)
    assert.ok(page.text.includes(`<pow-gate site-key="${DEMO_SITE_KEY}">`))
    assert.ok(page.text.includes('<script src="widget.js" async>'))
    const types = { 'demo/demo.css': 'text/css', 'demo/demo.js': 'text/javascript' }
    for (const [path, type] of Object.entries(types)) {
      assert.ok(page.text.includes(`"${path}"`))
      const { status, headers } = await call(`${service.url}/${path}`)
      assert.deepEqual([status, headers['content-type']], [200, `${type}; charset=utf-8`])
      const again = await call(`${service.url}/${path}`, { headers: { 'If-None-Match': headers.etag! } })
      assert.equal(again.status, 304)
    }
  })

  test('a form with a token shows what /verify-token answers; the same form again shows token-used', async () => {
    const from = freshAddress()
    const token = await client.token(DEMO_SITE_KEY, { from })
    const fields = { name: 'Ada', message: 'Hello', 'powgate-token': token }
    const page = await submit(service, fields, { from })
    assertPage(page, 200)
    assert.ok(page.text.includes('Thank you, Ada.'))
    const { accepted, code, answer } = shownBy(page)
    assert.deepEqual([accepted, code], [true, undefined])
    assert.deepEqual([answer.success, answer.score, answer.ip], [true, 1, from])
    assert.ok(Math.abs(answer.solvedAt - Date.now()) < 60_000)
    assert.match(page.text, /<h2>Accepted<.*\n.*Your score is 1, from 0 .* most sites ask for 0\.5\./)

    assert.equal(shownBy(await submit(service, fields, { from })).code, 'token-used')
  })

  test('a form of the other puzzle is redeemed at its own site', async () => {
    const from = freshAddress()
    assert.equal((await client.challenge(HASHWX_SITE_KEY, { from })).json.algorithm, 'hashwx')
    const token = await client.token(HASHWX_SITE_KEY, { from })
    const fields = { 'powgate-token': token, puzzle: 'hashwx' }
    const { code } = shownBy(await submit(service, { ...fields, puzzle: 'sha256' }, { from }))
    assert.equal(code, 'site-mismatch')
    assert.equal(shownBy(await submit(service, fields, { from })).accepted, true)
  })

  test('a low score passes here, and is told what it is', async () => {
    const from = freshAddress()
    const environment = { ...HONEST_ENVIRONMENT, webdriver: true, noLanguages: true }
    const solution = await client.solved(DEMO_SITE_KEY, { from }, { environment })
    const { token, passed } = (await client.verify(DEMO_SITE_KEY, solution, { from })).json
    assert.equal(passed, true)
    const page = await submit(service, { 'powgate-token': token }, { from })
    const { accepted, answer } = shownBy(page)
    assert.ok(accepted && answer.score < 0.5)
    assert.match(page.text, /<h2>Accepted here, refused by most sites</)
  })
})

describe('a first start, with POWGATE_DEMO at its default, auto', () => {
  let service: TestService
  let site: TestSite
  before(async () => {
    service = (await startObserved('embedded')).service
    site = await service.createSite({ name: 'made later' })
  })
  after(() => service.stop())

  test('turns the demo on, says where, and prints none of its keys', async () => {
    assert.ok(service.output.includes(`\n  ${service.url}/demo\n`))
    assert.match(service.output, /the demo page is at http/)
    assert.equal((await call(`${service.url}/demo`)).status, 200)
    assert.ok(!service.output.includes(DEMO_SITE_KEY))
    assert.ok(!service.output.includes('sk_'))
  })

  test("the demo's site serves the service's own pages under every name; a foreign page takes none of its visitor's requests", async () => {
    const { port } = service
    const from = freshAddress()
    const client = new Client(service.url)
    const ask = (headers: Record<string, string>, siteKey = DEMO_SITE_KEY) =>
      client.challenge(siteKey, { from, headers })
    const foreign = { Origin: 'https://evil.example', 'Sec-Fetch-Site': 'cross-site' }
    const { challengeAddress, challengeAddressSite } = CONTRACT_LIMITS
    // Refused requests count in a window of their own. Once it is full, what else would be refused gets 429 from here on.
    for (let count = 0; count < challengeAddressSite; count++)
      assert.equal((await ask(foreign)).json.code, 'origin-not-allowed')
    assert.equal((await ask({ Origin: 'null' })).status, 429)
    const own: readonly Record<string, string>[] = [
      {},
      ...[`localhost:${port}`, `127.0.0.1:${port}`, `[::1]:${port}`, 'office.lan:8080', 'office.lan'].map(
        Host => ({ Host, Origin: `http://${Host}` }),
      ),
      { Host: 'captcha.example', Origin: 'https://captcha.example:8443' }, // nginx' $host has no port
      { Host: 'upstream', Origin: 'https://captcha.example', 'Sec-Fetch-Site': 'same-origin' },
    ]
    for (const headers of own) assert.equal((await ask(headers)).status, 200, JSON.stringify(headers))
    assert.equal((await ask({ Host: 'upstream', Origin: 'http://captcha.example' })).status, 429)
    // The limits of one site and of the address hold; with the refused ones this would be more than the address may send.
    assert.ok(own.length + 2 * challengeAddressSite > challengeAddress)
    for (let count = 0; count < challengeAddressSite; count++)
      assert.equal((await ask({}, site.siteKey)).status, 200)
  })

  test('the first site, whose key the start prints, serves pages of this machine alone', async () => {
    const siteKey = /site key +(site_\w{22})/.exec(service.output)![1]!
    const client = new Client(service.url)
    const statusOf = async (Origin: string) =>
      (await client.challenge(siteKey, { from: freshAddress(), headers: { Origin } })).status
    for (const origin of ['http://localhost:3000', 'http://127.0.0.1', service.url])
      assert.equal(await statusOf(origin), 200, origin)
    for (const origin of ['https://evil.example', 'http://localhost.evil.example', 'null'])
      assert.equal(await statusOf(origin), 403, origin)
  })

  test('HTML in a submitted form is escaped in the page', async () => {
    const from = freshAddress()
    const token = await new Client(service.url).token(DEMO_SITE_KEY, { from })
    const fields = { name: `<script>"'&`, message: '<b>', 'powgate-token': token }
    const accepted = await submit(service, fields, { from })
    assertPage(accepted, 200)
    assert.ok(accepted.text.includes('Thank you, &#60;script&#62;&#34;&#39;&#38;.'))
    assert.ok(accepted.text.includes('href="../demo/demo.css"') && accepted.text.includes('href="../demo"'))
  })

  test('a submitted form without a usable token is refused with its code', async () => {
    for (const [body, headers, status, code] of [
      ['', {}, 400, 'no-token'],
      ['powgate-token=', {}, 400, 'no-token'],
      ['%%%=%E0&powgate-token', {}, 400, 'no-token'],
      ['powgate-token=abc', {}, 403, 'invalid-token'],
      ['powgate-token=a%00%F0%9F%98%80', {}, 403, 'invalid-token'],
      [`powgate-token=${'x'.repeat(2000)}`, {}, 403, 'invalid-body'],
      ['{"powgate-token":"x"}', { 'Content-Type': 'application/json' }, 415, 'content-type'],
      ['powgate-token=abc', { 'Content-Type': 'text/plain' }, 415, 'content-type'],
      [`message=${'x'.repeat(16_384)}`, {}, 413, 'body-too-large'],
    ] as const) {
      const answer = await submit(service, body, { headers })
      assertPage(answer, status)
      assert.deepEqual([shownBy(answer).accepted, shownBy(answer).code], [false, code], body.slice(0, 40))
    }
    const { text } = await call(`http://127.0.0.1:${service.env.POWGATE_ADMIN_PORT}/metrics`)
    const counted = text.match(/(?<="content",status="4\d\d",outcome=")[^"]+/g)!
    const expected = ['token-missing', 'body-shape', 'token-malformed', 'body-too-large', 'content-type']
    assert.deepEqual(counted.sort(), expected.sort())
  })

  test('a visitor who floods the demo is refused there, before anything is redeemed', async () => {
    const from = freshAddress()
    const answers: Answer[] = []
    for (let count = 0; count < 30; count++)
      answers.push(await submit(service, 'powgate-token=abc', { from }))
    const refused = answers.filter(({ status }) => status === 429)
    // Each of two workers takes ten submitted forms of an address.
    assert.ok(refused.length >= 10 && refused.length <= 20, String(refused.length))
    assert.deepEqual([shownBy(refused[0]!).code, shownBy(refused[0]!).answer], ['rate-limited', undefined])
    assert.equal((await submit(service, 'powgate-token=abc', { from: freshAddress() })).status, 403)
  })

  test('no API key is in the environment or on the command line of any process', () => {
    const family = [service.pid, ...childPids(service.pid)]
    assert.equal(family.length, 4) // primary, store, two workers
    for (const pid of family)
      for (const file of ['environ', 'cmdline'])
        assert.doesNotMatch(readFileSync(`/proc/${pid}/${file}`, 'utf8'), /sk_/, file)
  })

  test('the second start has no demo, keeps the site that it had, and does not know its keys', async () => {
    await service.end()
    await service.boot()
    for (const path of DEMO_PATHS) assert.equal((await call(service.url + path)).status, 404, path)
    assert.match((await call(`${service.url}/demo`)).json.error, /demo page is off\. .*POWGATE_DEMO=on/)
    assert.match(service.output, /\/demo is off now, POWGATE_DEMO=on serves it/)
    const client = new Client(service.url)
    for (const siteKey of DEMO_SITE_KEYS)
      assert.equal((await client.challenge(siteKey)).json.code, 'site-unknown')
    for (const puzzle of PUZZLES)
      assert.equal((await client.verifyToken(demoApiKey(TEST_SECRET, puzzle), { token: 'abc' })).status, 401)
    // The first is the site that every first start makes, with the demo page or without.
    assert.deepEqual(await siteNames(service), ['demo', 'demo page', 'demo page, HashWX', 'made later'])
  })
})

describe('starts', () => {
  afterEach(async () => {
    for (const server of [...leftovers].reverse()) await server.stop()
  })

  test('POWGATE_DEMO=off: no demo page, and none of its sites', async () => {
    const service = await TestService.start('embedded', { POWGATE_DEMO: 'off' })
    for (const path of DEMO_PATHS) {
      assert.equal((await call(service.url + path)).json.code, 'not-found', path)
      assert.equal((await call(service.url + path, { method: 'POST' })).status, 404, path)
    }
    assert.doesNotMatch(service.output, /demo page/)
    assert.deepEqual(await siteNames(service), ['demo']) // the first site, as above
  })

  test('POWGATE_DEMO=auto on Redis: no demo page', async () => {
    const service = await TestService.start('redis')
    assert.equal((await call(`${service.url}/demo`)).status, 404)
    assert.match(service.output, /"warn".* no sites yet in Redis .* lost them, restart no other host/)
  })

  test('POWGATE_DEMO=on, restarted twice: a site and an API key for each puzzle, which go on working, until the store is gone', async () => {
    const service = await TestService.start('redis', { POWGATE_DEMO: 'on', POWGATE_WORKERS: '1' })
    const client = new Client(service.url)
    const from = freshAddress()
    for (let start = 0; start < 3; start++) {
      await service.untilReady()
      const token = await client.token(DEMO_SITE_KEY, { from })
      assert.equal((await submit(service, { 'powgate-token': token }, { from })).status, 200)
      assert.match(service.output, /the demo page is at http/)
      await service.end()
      await service.boot()
    }
    assert.deepEqual(await siteNames(service), ['demo page', 'demo page, HashWX'])
    const store = await service.openSites()
    assert.equal((await store.listApiKeys()).length, 2)
    await store.close()
    // All four starts say so, because the demo's own site is none that a person made.
    assert.equal(service.output.match(/there are no sites yet/g)?.length, 4)
    await service.untilReady()
    const fields = { 'powgate-token': await client.token(DEMO_SITE_KEY, { from }) }
    await service.redis!.kill()
    const page = await submit(service, fields, { from })
    assert.deepEqual([page.status, shownBy(page).accepted, shownBy(page).code], [503, false, 'unavailable'])
  })

  test('with HOST=:: the demo uses up none of the 100 redemptions a minute of a backend on the same address', async () => {
    const env = { POWGATE_DEMO: 'on', HOST: '::', POWGATE_WORKERS: '1' }
    const service = await TestService.start('embedded', env)
    const { apiKey } = await service.createSite()
    for (let count = 0; count < 110; count++)
      assert.equal((await submit(service, 'powgate-token=abc', { from: freshAddress() })).status, 403)
    const backend = new Client(`http://[::1]:${service.port}`)
    assert.equal((await backend.verifyToken(apiKey, { token: 'abc' })).status, 400)
  })
})

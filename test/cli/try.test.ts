/** Commands beside a running service; `try` sends a visitor through all endpoints. `problem(2, ...)` gives the line of exit code 2. */

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import { connect, createServer as createTcpServer } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { before, describe, type TestContext, test } from 'node:test'
import { promisify } from 'node:util'
import { checkProof } from '../../src/domain/pow.ts'
import { writeFirstKeys } from '../../src/sites/service-files.ts'
import { Client } from '../harness/client.ts'
import { eventually } from '../harness/eventually.ts'
import { freshAddress } from '../harness/http.ts'
import { freePort, listenAnywhere } from '../harness/ports.ts'
import { STORE_KINDS, TestService } from '../harness/service.ts'
import { temporaryDir } from '../harness/temporary.ts'
import { Powgate } from './cli-process.ts'

/** A server of another program until the test ends. @returns its address */
async function serving(t: TestContext, answer: RequestListener): Promise<string> {
  const server = createServer(answer)
  t.after(() => server.close())
  return `http://127.0.0.1:${await listenAnywhere(server)}`
}

for (const kind of STORE_KINDS) {
  describe(`beside a service on the ${kind} store`, () => {
    let service: TestService
    let client: Client
    let powgate: Powgate

    before(async () => {
      service = await TestService.start(kind)
      await service.untilReady()
      client = new Client(service.url)
      // A Redis operator's shell has no secrets of the service.
      const { POWGATE_SECRETS: _, ...env } = service.env
      powgate = new Powgate({ ...env, POWGATE_URL: service.url })
    })

    test('site create prints a command that tries the site where the service listens', async () => {
      const printed = await powgate.text('site create --name pasted --base 16')
      const [, apiKey, args] = /POWGATE_API_KEY=(\S+) .* (try --site-key .*)\n/.exec(printed)!
      await powgate.with({ POWGATE_API_KEY: apiKey!, POWGATE_URL: '' }).text(args!)
    })

    test('sites and keys work from their creation on, and changes are seen within two seconds', async () => {
      const { siteKey, apiKey, apiKeyId } = await powgate.json('site create --name live --base 16')
      /** Two seconds in steps, so that a pause of the machine counts as one; from addresses enough to meet every worker. */
      const assertSeen = async (status: number, probe: (from: string) => Promise<{ status: number }>) => {
        for (let round = 0; ; round++) {
          const answers = await Promise.all(Array.from({ length: 16 }, () => probe(freshAddress())))
          if (answers.every(answer => answer.status === status)) return
          assert.ok(round < 8, `not every worker answers ${status}`)
          await new Promise(resolve => setTimeout(resolve, 250))
        }
      }
      assert.equal((await client.challenge(siteKey)).status, 200)
      const token = await client.token(siteKey)
      assert.equal((await client.verifyToken(apiKey, { token })).json.success, true)
      const second = await powgate.json(`key create ${siteKey}`)
      const redeem = (key: string) => (from: string) => client.verifyToken(key, { token: 'none' }, { from })
      await assertSeen(400, redeem(second.apiKey))
      await powgate.text(`key revoke ${apiKeyId}`)
      await assertSeen(401, redeem(apiKey))
      const another = await client.token(siteKey, { from: freshAddress() })
      assert.equal((await client.verifyToken(second.apiKey, { token: another })).json.success, true)
      await powgate.text(`site disable ${siteKey}`)
      await assertSeen(403, from => client.challenge(siteKey, { from }))
    })

    // What follows is the same on either store, but for the keys of a first start, which only the embedded store has.
    if (kind === 'redis') return

    test('try goes the whole way, as text and as JSON', async () => {
      const { siteKey, apiKey } = await powgate.json('site create --name tried --base 17')
      const text = await powgate.text('try', '--site-key', siteKey, '--api-key', apiKey)
      const expected = [
        /^GET \/challenge +[\d.]+ ms {2}\{"nonce":"[0-9a-f]{32}","difficulty":17,/,
        /^solved +[\d.]+ ms {2}counter \d+: [\d.]+ million hashes, [\d.]+ MH\/s, [\d.]+ s$/,
        /^POST \/verify +[\d.]+ ms {2}\{"token":"[^"]+","passed":true,/,
        /^POST \/verify-token +[\d.]+ ms {2}\{"success":true,"score":1,"ip":"127\.0\.0\.1",/,
        /^$/,
      ]
      for (const [index, line] of text.split('\n').entries()) assert.match(line, expected[index]!)

      const keys = { POWGATE_SITE_KEY: siteKey, POWGATE_API_KEY: apiKey }
      const env = { ...service.env, ...keys, POWGATE_URL: `${service.url}/` }
      const tried = await new Powgate(env).json('try')
      const { challenge, solved, verification, redemption } = tried
      const { nonce, difficulty } = challenge.answer
      assert.ok(checkProof(nonce, solved.counter, difficulty))
      assert.equal(verification.answer.passed, true)
      assert.deepEqual([redemption.answer.success, redemption.answer.score], [true, 1])
      for (const { ms } of [challenge, solved, verification, redemption]) assert.ok(ms > 0)
      const again = await client.verifyToken(apiKey, { token: verification.answer.token })
      assert.equal(again.json.code, 'token-used')
    })

    test('try and solve find the first counter of HashWX too', async () => {
      const { siteKey, apiKey, difficulty } = await powgate.json('site create --name wx --puzzle hashwx')
      assert.equal(difficulty.base, 17)
      const args = ['--site-key', siteKey, '--api-key', apiKey]
      const { challenge, solved, redemption } = await powgate.json('try', ...args)
      const { nonce, algorithm } = challenge.answer
      assert.deepEqual([algorithm, redemption.answer.success], ['hashwx', true])
      assert.equal(await powgate.text('solve', nonce, '17'), `${solved.counter}\n`)
      for (let tried = Math.max(0, solved.counter - 1000); tried <= solved.counter; tried++)
        assert.equal(checkProof(nonce, tried, 17, 'hashwx'), tried === solved.counter)
    })

    test('try sends the keys of a first start to this service alone: no other port or host gets a request', async t => {
      let requests = 0
      const other = await serving(t, (_, response) => {
        requests++
        response.end()
      })
      const { port } = service
      for (const url of [`http://127.0.0.1:${port}`, `http://localhost:${port}/`])
        assert.equal((await powgate.json('try --url', url)).redemption.answer.success, true, url)
      const samePort = [`http://0.0.0.0:${port}`, `http://127.0.0.1.example:${port}`]
      for (const url of [other, other.replace('127.0.0.1', 'localhost'), ...samePort, 'https://localhost']) {
        const problem = await powgate.problem(2, 'try --url', url)
        assert.match(problem, /expected both, or neither .* for this machine's service alone$/, url)
      }
      assert.equal(requests, 0)
    })

    test('try sends the keys of a first start to the HOST of the settings, and to 127.0.0.1 where that is 0.0.0.0', async () => {
      const dataDir = temporaryDir('first-keys')
      writeFirstKeys(dataDir, { siteKey: 'site_0123456789ABCDEFabcdef', apiKey: 'sk_any' })
      const named = powgate.with({ POWGATE_DATA_DIR: dataDir, HOST: 'own.invalid' })
      assert.match(await named.problem(1, `try --url http://own.invalid:${service.port}`), /^cannot reach /)
      const unnamed = named.with({ POWGATE_URL: '', HOST: '0.0.0.0', PORT: `${await freePort()}` })
      assert.match(await unnamed.problem(1, 'try'), /^cannot reach the service at http:..127\.0\.0\.1:/)
    })

    test('try --as calls as the clients of each vendor do, and compares the answers', async () => {
      const origins = '--origin https://shop.example --origin https://www.shop.example'
      const { siteKey, apiKey } = await powgate.json(`site create --name moved --base 16 --min 16 ${origins}`)
      const keys = ['--site-key', siteKey, '--api-key', apiKey, '--origin', 'https://www.shop.example']
      for (const [vendor, path, ...rows] of [
        ['turnstile', '/turnstile/v0', 'error-codes +\\[\\] +\\[\\]', 'cdata +"try_cdata" +"try_cdata"'],
        ['hcaptcha', '', 'error-codes +- +-', 'hostname +"www.shop.example" +"www.shop.example"'],
        ['recaptcha', '/recaptcha/api', 'action +"try_action" +"try_action"', 'score +1 +any'],
      ] as const) {
        const text = await powgate.text(`try --as ${vendor}`, ...keys)
        const asked = `POST ${path}/siteverify +[\\d.]+ ms {2}\\{"success":true,`
        for (const row of [asked, 'FIELD +ANSWERED +DOCUMENTED', ...rows])
          assert.match(text, new RegExp(`^${row}`, 'm'))
      }
      const { redemption } = await powgate.json('try --as turnstile', ...keys)
      assert.equal(redemption.answer.cdata, 'try_cdata')
      assert.match(await powgate.problem(2, 'try --as cap', ...keys), /turnstile, hcaptcha or recaptcha/)
    })

    test('a refusal of a proxy is told apart from the service’s', async t => {
      const { siteKey, apiKey } = await powgate.json('site create --name few --base 16 --limit-redeem 1')
      const few = `try --as turnstile --site-key ${siteKey} --api-key ${apiKey}`
      await powgate.text(few)
      const { problems: limited } = await powgate.run(few)
      assert.match(limited.join(), /siteverify answered 429 rate-limited: .* Retry after \d+ s\.$/)
      const url = await serving(t, (_, response) => response.writeHead(403).end('<h1>Forbidden</h1>'))
      const keys = `--site-key site_0123456789ABCDEFabcdef --api-key sk_12345678_${'x'.repeat(43)}`
      const { problems } = await powgate.run(`try ${keys} --url ${url}`)
      assert.match(problems.join(), /answered 403, and not by powgate: look at what stands before it/)
    })

    test('a proxy that speaks HTTP/1.0 to powgate, and https:// where none speaks TLS, are named', async t => {
      const proxy = createTcpServer(client => {
        const upstream = connect(service.port, '127.0.0.1')
        client.on('data', chunk => upstream.write(chunk.toString('latin1').replace('HTTP/1.1', 'HTTP/1.0')))
        upstream.pipe(client).on('error', () => upstream.destroy())
      })
      t.after(() => proxy.close())
      const port = await listenAnywhere(proxy)
      const { siteKey, apiKey } = await powgate.json('site create --name behind --base 16')
      const keys = `try --site-key ${siteKey} --api-key ${apiKey} --url`
      const old = await powgate.problem(1, `${keys} http://127.0.0.1:${port}`)
      assert.match(
        old,
        /answered 505: what stands before powgate speaks HTTP\/1\.0 .*proxy_http_version 1\.1\)$/,
      )
      const plain = await powgate.problem(1, `${keys} https://127.0.0.1:${service.port}`)
      assert.match(plain, /^cannot reach .* https:\S+: what listens there does not speak TLS: use http:\/\/,/)
    })

    test('a move that is not right yet: try --as names the fields, and fails', async t => {
      const { siteKey, apiKey } = await powgate.json('site create --name old --base 16 --min 16')
      const proxyUrl = await serving(t, async (request, response) => {
        const { url, method, headers } = request
        const isOld = url === '/siteverify' // answers as an older powgate did, always with `error-codes`
        const passed = ['x-site-key', 'content-type'].filter(name => headers[name])
        const sent = Object.fromEntries(passed.map(name => [name, String(headers[name])]))
        const body = method === 'POST' ? { body: await buffer(request) } : {}
        const answer = await fetch(service.url + url, { method: method!, headers: sent, ...body })
        const text = await answer.text()
        response.writeHead(answer.status).end(isOld ? text.replace(/}$/, ',"error-codes":[]}') : text)
      })
      const args = ['--site-key', siteKey, '--api-key', apiKey, '--url', proxyUrl]
      const { code, problems } = await powgate.run('try --as hcaptcha', ...args)
      assert.equal(code, 1)
      assert.match(problems[0]!, /not as documented: error-codes$/)
    })

    test('on a terminal, try shows how far the solving is', async () => {
      const { siteKey, apiKey } = await powgate.json('site create --name watched --base 21 --min 21')
      let run: Awaited<ReturnType<Powgate['run']>>
      do {
        run = await powgate.runOnTerminal('try --site-key', siteKey, '--api-key', apiKey)
        assert.equal(run.code, 0, run.out)
        // One challenge in eight is solved before the first line is due.
      } while (Number(/counter (\d+)/.exec(run.out)![1]) < 2 ** 18)
      assert.match(run.out, /\[Ksolving: [\d.]+ of about 2\.10 million hashes, [\d.]+ MH\/s, [\d.]+ s\r/)
      for (const line of run.out.split(/[\r\n]/).filter(line => line.includes('solving')))
        assert.ok(line.length < 80, line)
    })

    test('the endpoints answer curl as the HTTP reference shows', async () => {
      const { siteKey, apiKey } = await powgate.json('site create --name', 'by hand')
      const page = readFileSync(new URL('../../docs/reference/http-api.md', import.meta.url), 'utf8')
      const section = /^## The three endpoints, with curl\n+```sh\n(.*?)^# (.*?)\n```$/ms
      const [, commands, shown] = section.exec(page)!
      const script = commands!
        .replace('site_...', siteKey)
        .replace('sk_...', apiKey)
        .replace('http://localhost:8080', service.url)
      const cwd = new URL('../..', import.meta.url).pathname
      const { stdout } = await promisify(execFile)('bash', ['-euc', script], { cwd })
      const { solvedAt, ...got } = JSON.parse(stdout)
      const { solvedAt: shownAt, ...expected } = JSON.parse(shown!)
      assert.deepEqual(got, expected)
      assert.equal(typeof solvedAt, typeof shownAt)
    })

    test('try says in one line what went wrong', async () => {
      const flags = '--base 16 --plan pro --require-origin --origin https://a.example'
      const site = await powgate.json(`site create --name strict ${flags}`)
      const other = await powgate.json('site create --name other --base 16')
      const keys = `try --api-key ${site.apiKey} --site-key ${site.siteKey}`
      const nobody = `try --api-key ${site.apiKey} --site-key site_0123456789ABCDEFabcdef`
      const outsider = `try --api-key ${site.apiKey} --site-key ${other.siteKey}`
      const closed = `http://127.0.0.1:${await freePort()}`

      await powgate.text(`${keys} --origin https://a.example`)
      for (const [call, line] of [
        [keys, /^GET \/challenge answered 403 origin-not-allowed: /],
        [nobody, /^GET \/challenge answered 403 site-unknown: /],
        [`${outsider} --json`, /^POST \/verify-token answered 400 site-mismatch: /],
        [`${keys} --url ${closed}`, /^cannot reach the service at http:\S+\d\/challenge: nothing listens/],
        [`${keys} --url ${service.url}/elsewhere`, /^GET \/challenge answered 404 not-found: /],
      ] as const)
        assert.match(await powgate.problem(1, call), line)
      await powgate.text('key revoke', site.apiKeyId)
      await powgate.text(`site update ${other.siteKey} --plan pro --block 127.0.0.0/8`)
      const fails = (call: string, line: RegExp, shown = '') =>
        eventually(60_000, String(line), async () => {
          await new Promise(resolve => setTimeout(resolve, 1000)) // more tries would reach a limit
          const { code, problems, out } = await powgate.run(`${call} --json`)
          return code === 1 && problems.length === 1 && line.test(problems[0]!) && out.includes(shown)
        })
      const invalid = /^POST \/verify-token answered 401 invalid-credentials: /
      await fails(`${keys} --origin https://a.example`, invalid)
      await fails(outsider, /^POST \/verify did not pass: /, '"passed":false')
    })
  })
}

/** The lines of a running service, their fields and their number. (No secret is in them: canaries.ts; no address: privacy.test.ts.) */

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { Keyring } from '../../src/domain/keyring.ts'
import { apiKeyId } from '../../src/domain/site.ts'
import { FAILURES_PER_MINUTE, isSampled, REFUSALS_PER_MINUTE } from '../../src/log/event-log.ts'
import { wrongCounter } from '../contract/support.ts'
import { Client, HONEST_ENVIRONMENT, solutionOf } from '../harness/client.ts'
import { eventually, PATIENCE_MS } from '../harness/eventually.ts'
import { type Answer, call, closeIdleConnections, freshAddress } from '../harness/http.ts'
import { PrometheusText } from '../harness/metrics.ts'
import { freePort } from '../harness/ports.ts'
import { leftovers, listeningPids } from '../harness/processes.ts'
import { RawConnection } from '../harness/raw-http.ts'
import { EASY, TEST_SECRET, TestService, type TestSite, UNLIMITED_REDEMPTIONS } from '../harness/service.ts'
import { temporaryDir } from '../harness/temporary.ts'
import { words } from '../harness/values.ts'

const ALL_EVENTS = words(
  'challenge-issued verification-passed verification-failed token-redeemed refused',
  'unlogged fault redemption-limit redemption-junk redemption-malformed redemption-unbound field-ignored memory-crowded',
)
const EVENTS_OF_VISIT = words('challenge-issued verification-passed token-redeemed')

// biome-ignore lint/suspicious/noExplicitAny: tests look into whatever was logged
type Line = any

/** The lines of the log, without what a first start prints before them. */
function logOf({ output }: TestService): string {
  return output.slice(Math.max(0, output.search(/^\{"level"/m)), output.lastIndexOf('\n') + 1)
}

function eventsOf(service: TestService, event?: string): Line[] {
  const lines = logOf(service).split('\n')
  const parsed: Line[] = lines.flatMap(line => (line.startsWith('{') ? [JSON.parse(line)] : []))
  return parsed.filter(line => (event === undefined ? line.event !== undefined : line.event === event))
}

/** Lines reach the test a moment after the answer. */
async function logged(service: TestService, count: number, event?: string): Promise<Line[]> {
  await eventually(PATIENCE_MS, `${count} lines`, () => eventsOf(service, event).length >= count)
  return eventsOf(service, event)
}

type Use = (service: TestService, client: Client, site: TestSite) => Promise<void>

/** Runs `use` with a service of one worker that logs all successes, and a site of the lowest difficulty. */
async function withService(env: Record<string, string>, use: Use) {
  const one = { POWGATE_WORKERS: '1', POWGATE_LOG_SUCCESSES: '1' }
  const service = await TestService.start('embedded', { ...one, ...env })
  const site = await service.createSite({ difficulty: EASY })
  await use(service, new Client(service.url), site).finally(() => service.stop())
}

const eventNames = (lines: readonly Line[]) => lines.map(line => line.event)
const idsOf = (answers: readonly Answer[]) => answers.flatMap(({ headers }) => headers['x-request-id'] ?? [])
const lineIds = (lines: readonly Line[]) => lines.map(line => line.requestId)

/** Runs `step` in `count` lanes at once, `times` times in each. */
function lanes(count: number, times: number, step: () => Promise<unknown>): Promise<unknown> {
  const lane = async () => {
    for (let done = 0; done < times; done++) await step()
  }
  return Promise.all(Array.from({ length: count }, lane))
}

describe('lines', () => {
  test('each step of a visitor has one, with the id that its answer bears and the same nonce', () =>
    withService({ POWGATE_LOG_ADDRESSES: 'whole' }, async (service, client) => {
      const perSecond = 5
      const shop = { difficulty: EASY, origins: ['https://shop.example'], usualRate: perSecond }
      const { siteKey, apiKey } = await service.createSite(shop)
      const from = freshAddress()
      const headers = { origin: 'https://shop.example' }
      const solution = await client.solved(siteKey, { from, headers }, { solveTimeMs: 3 })
      const verified = await client.verify(siteKey, solution, { from, headers })
      const { token } = verified.json
      const redeemed = await client.verifyToken(apiKey, { token })
      const again = await client.verifyToken(apiKey, { token })
      const lines = await logged(service, 4)
      assert.deepEqual(eventNames(lines), [...EVENTS_OF_VISIT, 'refused'])
      assert.deepEqual(lineIds(lines.slice(1)), idsOf([verified, redeemed, again]))
      assert.equal(new Set(lineIds(lines)).size, 4)
      const common = { level: 'info', name: 'powgate', hostname: hostname(), worker: 0 }
      for (const line of lines) has(line, { nonce: solution.nonce, site: siteKey, ...common })
      const [issued, passed, used, refused] = lines
      const keyId = apiKeyId(apiKey)
      has(issued, {
        ...{ ip: from, origin: headers.origin, puzzle: 'sha256', difficulty: 16, bounds: EASY },
        price: { address: 0, network: 0, site: 0 },
        siteRateUsual: 60 * perSecond, // from the first challenge on
        ...{ addressChallenges: 0, addressLimit: 30, addressAccepted: 0 },
      })
      has(passed, {
        ...{ ip: from, score: 1, threshold: 0.5, reasons: [], penalties: {}, environment: [] },
        ...{ difficulty: 16, solveTimeMs: 3, addressFailures: 0 },
      })
      assert.ok(passed.elapsedMs >= 0)
      has(used, { ip: '127.0.0.1', visitorIp: from, apiKeyId: keyId, score: 1 })
      assert.ok(used.tokenAgeMs >= 0)
      const [endpoint, code] = ['verify-token', 'token-used']
      has(refused, { ip: '127.0.0.1', endpoint, status: 400, code, reason: code, apiKeyId: keyId })
    }))

  test('a backend that uses half of a redemption limit is told once, with the command that raises it; junk, also beyond its limit, without', () => {
    const file = join(temporaryDir('settings'), 'powgate.conf')
    writeFileSync(file, '# no settings\n')
    const use: Use = async (service, client, { siteKey, apiKey }) => {
      // The command names five times what came in the minute (50 to 61, asserted below), rounded up to 100, 200, 500 ...
      const command = `npm run -s powgate -- site update ${siteKey} --limit-redeem 500 --config ${file}`
      const token = await client.token(siteKey)
      // One use; then 100 reuses, which fill the limit of junk; then 79 that this limit refuses.
      await lanes(20, 9, () => client.verifyToken(apiKey, { token }))
      const [junk] = await logged(service, 1, 'redemption-junk')
      has(junk, { level: 'warn', caller: '127.0.0.1', site: siteKey, limit: 100 })
      assert.doesNotMatch(junk.msg, /--limit-redeem/)
      assert.deepEqual(eventsOf(service, 'redemption-limit'), [])
      const newToken = () => client.token(siteKey, { from: freshAddress() })
      const tokens = await Promise.all(Array.from({ length: 60 }, newToken))
      for (const token of tokens) await client.verifyToken(apiKey, { token })
      const [told, ...more] = await logged(service, 1, 'redemption-limit')
      has(told, { level: 'warn', caller: '127.0.0.1', site: siteKey, limit: 100 })
      assert.ok(told.perMinute >= 50 && told.perMinute <= 61)
      assert.ok(told.msg.endsWith(command), told.msg)
      assert.deepEqual(more, [])
    }
    return withService({ POWGATE_CONFIG_FILE: file }, use)
  })

  test('a site whose redemptions name no address, a field that is ignored, and a body refused for another than the token are told once', () =>
    withService({}, async (service, client) => {
      const create = () => service.createSite({ difficulty: EASY })
      const [bound, unbound] = [await create(), await create()]
      // From the 20th redemption on, process/backends.ts tells that none named an address.
      for (const { siteKey, apiKey } of [bound, unbound])
        for (let count = 0; count < 20; count++) {
          const from = freshAddress()
          const token = await client.token(siteKey, { from })
          // Unknown fields: the name of the first is logged, and that of the second looks like a secret.
          const unknown = { theme: 'dark', [apiKey]: '' }
          const fields = siteKey === bound.siteKey ? { expectedIp: from } : unknown
          assert.equal((await client.verifyToken(apiKey, { token, ...fields })).json.success, true)
        }
      const [told, ...more] = await logged(service, 1, 'redemption-unbound')
      has(told, { level: 'warn', site: unbound.siteKey })
      assert.match(told.msg, /: send expectedIp, /)
      const [ignored, ...others] = await logged(service, 1, 'field-ignored')
      has(ignored, { level: 'info', site: unbound.siteKey, field: 'theme' })
      assert.deepEqual([...more, ...others], [])
      for (const wrong of [{ token: '' }, { token: 'x', expectedIp: '192.0.2.1, 192.0.2.2' }])
        assert.equal((await client.verifyToken(bound.apiKey, wrong)).status, 400)
      const malformed = await logged(service, 1, 'redemption-malformed')
      has(malformed[0], { level: 'warn', site: bound.siteKey, reason: 'expected-ip-malformed expectedIp' })
      assert.equal(malformed.length, 1)
    }))

  test('a failure names its reasons with what each took off', () =>
    withService({}, async (service, client, { siteKey }) => {
      const from = freshAddress()
      const environment = { ...HONEST_ENVIRONMENT, webdriver: true, noPlugins: true }
      for (let time = 0; time < 2; time++) {
        const solution = await client.solved(siteKey, { from }, { environment, solveTimeMs: 1e9 })
        await client.verify(siteKey, solution, { from })
      }
      const [first, second] = await logged(service, 2, 'verification-failed')
      has(first, {
        score: 0.1,
        penalties: { webdriver: 0.6, noPlugins: 0.1, solveTimeImpossible: 0.2 },
        environment: ['webdriver', 'noPlugins'],
        solveTimeMs: 1e9,
      })
      has(second, { score: 0.05, addressFailures: 1 })
      assert.equal(second.penalties.recentFailure, 0.05)
      const solved = await client.solved(siteKey, { from })
      const unsolved = { ...solved, counter: wrongCounter(solved.nonce) }
      await client.verify(siteKey, unsolved, { from })
      const [, , third] = await logged(service, 3, 'verification-failed')
      has(third, { nonce: unsolved.nonce, score: null, reasons: ['proof-wrong'], penalties: undefined })
    }))

  test('refusals of the category "routine" are logged at level debug only, others at info too, none at warn', async () => {
    for (const level of ['debug', 'info', 'warn']) {
      await withService({ LOG_LEVEL: level }, async (service, client, { siteKey, apiKey }) => {
        const wrong = `${apiKey.slice(0, -1)}${apiKey.endsWith('A') ? 'B' : 'A'}`
        // src/domain/outcome.ts has the category of each reason.
        const routine = [
          await client.challenge('no-site-key'),
          await client.verify(siteKey, 'no json'),
          await client.verifyToken(apiKey, { tokens: 1 }),
        ]
        const others = [
          await client.challenge('site_0000000000000000000000'),
          await client.verify(siteKey, solutionOf('0'.repeat(32))),
          await client.verifyToken(wrong, { token: 'x' }),
          await client.verifyToken(apiKey, { token: 'x' }),
          await client.verify(siteKey, 'x'.repeat(9000)),
        ]
        assert.equal(idsOf(routine).length, level === 'debug' ? routine.length : 0)
        assert.equal(idsOf(others).length, level === 'warn' ? 0 : others.length)
        const ids = idsOf([...routine, ...others])
        assert.deepEqual(lineIds(await logged(service, ids.length, 'refused')), ids)
      })
    }
  })
})

describe('how many lines', () => {
  test('a flood of refusals and failures is cut off, and what was left out is counted by reason', () =>
    withService({}, async (service, client, { siteKey }) => {
      const startedMs = performance.now()
      const refused: Answer[] = []
      const failed: Answer[] = []
      const refuse = async () => refused.push(await client.verifyToken('sk_malformed', { token: 'x' }))
      const fail = async () => {
        const from = freshAddress()
        const { nonce } = (await client.challenge(siteKey, { from })).json
        const answer = await client.verify(siteKey, solutionOf(nonce), { from })
        if (!answer.json.passed) failed.push(answer) // a counter that is guessed solves one in 65,536
      }
      await lanes(8, 75, refuse) // five times the lines of a minute
      const other = await client.challenge('site_0000000000000000000000')
      assert.ok(other.headers['x-request-id'] !== undefined, 'a flood of one kind hides no other')
      await lanes(8, 30, fail)
      const minutes = Math.ceil((performance.now() - startedMs) / 60_000) + 1
      await service.end() // it says what is still to be said

      for (const [name, answers, linesPerMinute] of [
        ['credentials-malformed', refused, REFUSALS_PER_MINUTE],
        ['verification-failed', failed, FAILURES_PER_MINUTE],
      ] as const) {
        const lines = eventsOf(service).filter(({ event, reason }) => event === name || reason === name)
        const summaries = eventsOf(service, 'unlogged')
        const notLogged = summaries.reduce((sum, { counts }) => sum + (counts[name] ?? 0), 0)
        assert.equal(lines.length + notLogged, answers.length)
        assert.ok(notLogged > 0 && lines.length >= linesPerMinute, `${lines.length} lines`)
        assert.ok(lines.length <= linesPerMinute * minutes, `${lines.length} lines in ${minutes} minutes`)
        // An id in the answer says that there is a line, and only then.
        assert.deepEqual(idsOf(answers).sort(), lineIds(lines).sort())
      }
    }))

  test('of a share of the visitors all steps are logged, and of the others none', () =>
    withService(
      { POWGATE_LOG_SUCCESSES: '0.5', ...UNLIMITED_REDEMPTIONS },
      async (service, client, { siteKey, apiKey }) => {
        const [nonces, stories]: [string[], string[]] = [[], []]
        await lanes(4, 50, async () =>
          nonces.push((await client.challenge(siteKey, { from: freshAddress() })).json.nonce),
        )
        for (let i = 0; i < 6; i++) {
          const token = await client.token(siteKey, { from: freshAddress() })
          await client.verifyToken(apiKey, { token })
          stories.push(token.split('|')[1]!)
        }
        const { sampleKey } = new Keyring([TEST_SECRET]).signing
        const sampled = [...nonces, ...stories].filter(nonce => isSampled(nonce, 0.5, sampleKey))
        assert.ok(sampled.length > 60 && sampled.length < 146, `${sampled.length} of 206`) // fails once in 10^8 runs
        assert.ok(!sampled.every(nonce => isSampled(nonce, 0.5, ~sampleKey)), 'the key decides')
        await service.end()
        const lines = eventsOf(service)
        const issued = eventsOf(service, 'challenge-issued').map(line => line.nonce)
        assert.deepEqual(issued.sort(), sampled.sort())
        for (const nonce of stories.filter(nonce => sampled.includes(nonce)))
          assert.deepEqual(eventNames(lines.filter(line => line.nonce === nonce)), EVENTS_OF_VISIT)
      },
    ))

  test('at level trace everything is logged', () =>
    withService({ LOG_LEVEL: 'trace', POWGATE_LOG_SUCCESSES: '0' }, async (service, client, { siteKey }) => {
      const count = 2 * FAILURES_PER_MINUTE
      await lanes(count, 1, () => client.challenge(siteKey, { from: freshAddress() }))
      await lanes(count, 1, () => client.verifyToken('malformed', {}))
      await logged(service, count, 'refused')
      assert.equal((await logged(service, count, 'challenge-issued')).length, count)
      assert.equal(eventsOf(service, 'unlogged').length, 0)
    }))
})

/** Quotes, line ends of other alphabets, every byte that gets through the HTTP parser, and too much. */
const HOSTILE = [
  '"}\\n{"event":"token-redeemed","requestId":"forged"}',
  'https://a.example/\x85{"level":30,"event":"refused"}',
  Array.from({ length: 0x100 - 0x21 }, (_, index) => String.fromCharCode(0x21 + index)).join('\t'),
  `https://${'long.'.repeat(600)}example`,
  '{{{"""\\\\\\"""}}}',
]

test('what clients send cannot forge a line: in Origin, X-Site-Key and X-Request-Id', () =>
  withService({ LOG_LEVEL: 'trace', POWGATE_TRUSTED_PROXIES: '127.0.0.1' }, async (service, client) => {
    const { siteKey, apiKey } = await service.createSite({ origins: ['https://shop.example'] })
    const known = `X-Site-Key: ${siteKey}`
    const ask = async (headers: string) => {
      const connection = await RawConnection.open(service.port)
      return connection.request(`${HEAD}${headers}\r\n\r\n`).finally(() => connection.close())
    }
    for (const value of HOSTILE) {
      await ask(`${known}\r\nOrigin: ${value}`)
      await ask(`X-Site-Key: ${value}`)
      await ask(`${known}\r\nX-Request-Id: ${value}`)
    }
    const unanswered = await RawConnection.open(service.port)
    // The HTTP parser takes these bytes for an unfinished request: it never answers.
    await unanswered.send(`${HEAD}${known}\r\nOrigin: \x1b[2J\x1b]0;owned\x07\r\n\r\n`)
    assert.equal(await unanswered.answerWithin(300), undefined)
    unanswered.close()
    // A frequent mistake is the secret key where the public one belongs.
    await ask(`X-Site-Key: ${apiKey}`)
    await ask(`X-Site-Key: ${'x'.repeat(40)}${apiKey}`)
    await ask(`${known}\r\nX-Request-Id: from-the-proxy/1`)
    await client.challenge('site_0000000000000000000000')
    await eventually(PATIENCE_MS, 'the last line', () => /site_0{22}/.test(service.output))
    const log = logOf(service)
    for (const line of log.trim().split('\n')) {
      assert.match(line, /^\{"level":"[a-z]+","time":\d{13},"name":"powgate",[\x20-\x7e]*\}$/)
      assert.ok(line.length < 4096, `${line.length} characters`)
      const { event, requestId } = JSON.parse(line)
      if (event !== undefined) assert.ok(ALL_EVENTS.includes(event), event)
      assert.notEqual(requestId, 'forged')
    }
    assert.ok(!log.includes(apiKey.slice(12)), 'an API key in the wrong header')
    assert.ok(log.includes('from-the-proxy/1'))
    assert.ok(eventsOf(service, 'refused').length > HOSTILE.length)
  }))

/** The line has these fields; undefined: it does not have this one. */
function has(line: Line, fields: Readonly<Record<string, unknown>>): void {
  const own = Object.fromEntries(Object.keys(fields).map(name => [name, line[name]]))
  assert.deepEqual(own, fields)
}

const HEAD = 'GET /challenge HTTP/1.1\r\nHost: x\r\n'

const main = new URL('../../dist/main.js', import.meta.url).pathname
/** Node.js gives a child a Unix stream socket, as the journal of systemd does. */
const KINDS: Readonly<Record<string, readonly string[]>> = {
  'a socket whose reader pauses': [process.execPath, main],
  'a pipe whose reader pauses': ['sh', '-c', `${process.execPath} ${main} | cat`],
  'a full disk': ['sh', '-c', `exec ${process.execPath} ${main} > /dev/full`],
  'a terminal that nobody reads': ['script', '-qfc', `exec ${process.execPath} ${main}`, '/dev/null'],
}
for (const [kind, [command = '', ...args]] of Object.entries(KINDS))
  test(`a log that takes no more, ${kind}: every request is answered, lines are lost and counted, and SIGTERM ends the service`, async () => {
    const [port, adminPort] = [await freePort(), await freePort()]
    const { PATH, HOME } = process.env
    const env = {
      ...{ PATH, HOME, HOST: '127.0.0.1', PORT: String(port), POWGATE_ADMIN_PORT: String(adminPort) },
      ...{ POWGATE_WORKERS: '2', POWGATE_DATA_DIR: temporaryDir('paused'), LOG_LEVEL: 'trace' },
      // A worker that hangs would be killed after this time, which the test does not wait for.
      ...{ POWGATE_LOG_FORMAT: 'json', POWGATE_OVERLOAD_MS: '0', POWGATE_DRAIN_SECONDS: '300' },
    }
    const child = spawn(command, args, { env }) // nobody reads its standard output
    let problems = ''
    child.stderr.setEncoding('utf8').on('data', text => (problems += text))
    const signal = (name: NodeJS.Signals) => listeningPids(adminPort).map(pid => process.kill(pid, name))
    const stop = async () => {
      signal('SIGKILL')
      child.kill('SIGKILL')
    }
    leftovers.add({ stop })
    const admin = (path: string) => call(`http://127.0.0.1:${adminPort}${path}`)
    const isReady = async () => (await admin('/readyz').catch(() => undefined))?.status === 200
    const ask = async (count: number) => {
      for (let done = 0; done < count; done++)
        assert.equal((await call(`http://127.0.0.1:${port}/challenge`)).status, 400)
    }
    const lost = async () =>
      new PrometheusText((await admin('/metrics')).text).samples('powgate_log_lines_lost_total')[0]!.value
    await eventually(PATIENCE_MS, 'ready', isReady)
    const untilLost = async (before: number) => {
      await ask(500)
      return (await lost()) > before
    }
    await eventually(PATIENCE_MS, 'lost lines', () => untilLost(0))
    closeIdleConnections()
    const killed = listeningPids(port)[0]!
    // The fork of its successor makes a shared socket or terminal blocking for all processes (src/log/log-output.ts undoes it).
    process.kill(killed, 'SIGKILL')
    await eventually(PATIENCE_MS, 'the new worker', () => {
      const pids = listeningPids(port)
      return pids.length === 2 && !pids.includes(killed)
    })
    const before = await lost()
    await eventually(PATIENCE_MS, 'more lost lines', () => untilLost(before))
    assert.equal((await admin('/healthz')).status, 200)
    closeIdleConnections()
    signal('SIGTERM')
    await eventually(PATIENCE_MS, 'the end', async () => listeningPids(adminPort).length === 0)
    if (kind !== 'a socket whose reader pauses') return
    // The primary process, and a worker that had lost lines before.
    const told = /(\d+ lines of the log were lost at the end \(EAGAIN\)\n){2}/
    const said = () => problems
    await eventually(PATIENCE_MS, said, () => told.test(problems))
  })

/** `powgate explain` on the log of a running service, and on logs written by other tools. */

import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync, readdirSync, truncateSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { stepOf } from '../../src/cli/explain.ts'
import { SETTINGS } from '../../src/config/settings.ts'
import { CLOCK_SKEW_MS } from '../../src/domain/clock.ts'
import { ENDPOINT_NAMES, ENDPOINTS } from '../../src/domain/endpoint.ts'
import { OUTCOMES, type Reason } from '../../src/domain/outcome.ts'
import { PRICING } from '../../src/domain/pricing.ts'
import { type LogRecord, searchLogs, VISITS_SHOWN } from '../../src/explain/search.ts'
import { JUDGEMENT_WORDS, limitWords } from '../../src/words/reasons.ts'
import { REFUSAL_WORDS } from '../../src/words/refusals.ts'
import { Powgate, written } from '../cli/cli-process.ts'
import { Client, HONEST_ENVIRONMENT } from '../harness/client.ts'
import { eventually, PATIENCE_MS } from '../harness/eventually.ts'
import { freshAddress } from '../harness/http.ts'
import { EASY, TestService } from '../harness/service.ts'
import { temporaryDir } from '../harness/temporary.ts'

const dir = temporaryDir('explain-test')

const powgate = new Powgate({})
const UNKNOWN_SITE = 'site_0000000000000000000000'

const file = (name: string, content: string | Buffer) => written(join(dir, name), content)

/** What is told of a visitor or a request by one log. */
const explain = (visitor: string, log: string) => powgate.text('explain', visitor, '--log', log)

/** The one line that is said, with exit code 1, where nothing can be told. */
const problem = (visitor: string, log: string) => powgate.problem(1, 'explain', visitor, '--log', log)

/** The text without what is said of the log itself. */
const storyOf = (text: string): string => text.replace(/^Read: .*\n/m, '')

const service = await TestService.start('embedded', {
  POWGATE_WORKERS: '1', // so lines come in the order of the requests
  LOG_LEVEL: 'trace',
  POWGATE_LOG_ADDRESSES: 'whole',
  POWGATE_LIMIT_CHALLENGE_ADDRESS_SITE: '12',
})
const client = new Client(service.url)
const { siteKey, apiKey } = await service.createSite({ difficulty: EASY })
const idOf = (answer: { headers: Record<string, unknown> }) => String(answer.headers['x-request-id'])

// Visits of every kind. `failed`, `limited`, `moved` and `mismatched` are the request ids of how they end.
const [visitor, other] = [freshAddress(), freshAddress()]
const token = await client.token(siteKey, { from: visitor })
await client.verifyToken(apiKey, { token })
await client.verifyToken(apiKey, { token })

const bot = { from: freshAddress() }
const signals = { environment: { ...HONEST_ENVIRONMENT, webdriver: true }, solveTimeMs: 1e8 }
const solution = await client.solved(siteKey, bot, signals)
const failed = idOf(await client.verify(siteKey, solution, bot))

const eager = { from: freshAddress() }
let hardNonce = ''
for (let i = 0; i < 12; i++) hardNonce = (await client.challenge(siteKey, eager)).json.nonce
const limited = idOf(await client.challenge(siteKey, eager))

const taken = await client.solved(siteKey, { from: freshAddress() })
const moved = idOf(await client.verify(siteKey, taken, { from: freshAddress() }))
const stolen = await client.token(siteKey, { from: other })
const mismatched = idOf(await client.verifyToken(apiKey, { token: stolen, expectedIp: '192.0.2.7' }))
await client.challenge(UNKNOWN_SITE)
await eventually(PATIENCE_MS, 'the last line', () => service.output.includes(UNKNOWN_SITE))
const log = file('service.log', service.output)

describe('on the log of a service', () => {
  test('a token tells the whole story, and is not repeated; its nonce and the address of its visitor lead there too', async () => {
    const text = await explain(token, log)
    const nonce = token.split('|')[1]
    assert.equal(
      text // without what differs from run to run
        .replace(/\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}Z/g, 'TIME')
        .replace(/requestId [\w-]+/g, 'requestId ID')
        .replace(/Ms \d+/g, 'Ms SPAN'),
      `Visitor of ${siteKey}, nonce ${nonce}

TIME  challenge-issued
    worker 0, requestId ID, ip ${visitor}, puzzle sha256, difficulty 16, bounds (base 16, min 16, max 28), price (address 0, network 0, site 0), addressChallenges 0, addressLimit 12, addressAccepted 0, isReturning false, siteRate 0, siteRateUsual 0

TIME  verification-passed
    worker 0, requestId ID, ip ${visitor}, score 1, threshold 0.5, penalties (), environment [], difficulty 16, elapsedMs SPAN, addressFailures 0

TIME  token-redeemed
    worker 0, requestId ID, ip 127.0.0.1, apiKeyId ${apiKey.slice(3, 11)}, visitorIp ${visitor}, score 1, tokenAgeMs SPAN

TIME  refused
    The token was redeemed before. A form sent twice, or a replay. A backend that retries sends an idempotencyKey.
    worker 0, requestId ID, ip 127.0.0.1, endpoint verify-token, status 400, code token-used, reason token-used, apiKeyId ${apiKey.slice(3, 11)}

Read: TIME to TIME, of ${hostname()}; other hosts have logs of their own (--log for each)
`,
    )
    for (const secret of token.split('|').slice(3)) assert.ok(!text.includes(secret)) // sealed claims, signature
    assert.equal(await explain(nonce!, log), text, 'the same by the nonce')
    for (const way of [encodeURIComponent(token), visitor, `::ffff:${visitor}`])
      assert.equal(await explain(way, log), text, way)
  })

  test('a request id leads through its nonce to the steps before, also from a pipe', async () => {
    const fromFile = await explain(failed, log)
    const start = `^Visitor of ${siteKey}, nonce ${solution.nonce}\n\n\\S+ \\S+ {2}challenge-issued\n`
    assert.match(fromFile, new RegExp(start))
    const judgement =
      /verification-failed\n {4}webdriver: The browser says that a program drives it .*\n {4}solveTimeImpossible: .*\n {4}.*score 0\.2, threshold 0\.5, penalties \(webdriver 0\.6, solveTimeImpossible 0\.2\), .*solveTimeMs 100000000\b/
    assert.match(fromFile, judgement)
    const piped = await powgate.runWithInput(service.output, 'explain', failed)
    assert.deepEqual([piped.code, piped.err, piped.out], [0, '', fromFile])
    const dashed = await powgate.runWithInput(service.output, 'explain', solution.nonce, '--log', '-')
    assert.equal(dashed.out, fromFile)
  })

  test('a signal while it copies a pipe leaves nothing of the log behind', async () => {
    const TMPDIR = temporaryDir('explain-copy')
    const child = spawn(process.execPath, ['dist/cli/main.js', 'explain', failed], { env: { TMPDIR } })
    child.stdin.write(service.output)
    const openFiles = () => spawnSync('ls', ['-l', `/proc/${child.pid}/fd`]).stdout
    await eventually(PATIENCE_MS, 'it copies', () => openFiles().includes('/powgate-explain-'))
    child.kill('SIGINT')
    await once(child, 'close')
    assert.deepEqual(readdirSync(TMPDIR), [])
  })

  test('a climb in difficulty and a limit are told with their causes', async () => {
    // The last of the 12 challenges that the limit allows: the 11 before it cost all four bits (domain/price.ts).
    const climb =
      /difficulty 20, bounds \(base 16, .*price \(address 4, network 0, site 0\), addressChallenges 11, addressLimit 12,/
    assert.match(await explain(hardNonce, log), climb)
    const which = "per address and site \\(POWGATE_LIMIT_CHALLENGE_ADDRESS_SITE, or the site's own\\)"
    const limit = new RegExp(`^Requests to ${siteKey}\n\n.* {2}refused\n.*\n.*${which}`)
    assert.match(await explain(limited, log), limit)
    const move =
      /challenge-issued\n[\s\S]*refused\n {4}The challenge was requested from another address.*\n[\s\S]*status 403, code ip-mismatch, reason nonce-other-address/
    assert.match(await explain(moved, log), move)
  })

  test('a mismatch of expectedIp tells both addresses, and either one leads to it', async () => {
    const told = `expectedIp 192.0.2.7, visitorIp ${other}`
    for (const query of [mismatched, other, '192.0.2.7'])
      assert.ok((await explain(query, log)).includes(told), query)
  })

  test('several logs, compressed or not, are one; without the challenge the nonce itself tells of it', async () => {
    const lines = service.output.split('\n')
    const half = lines.findIndex(line => line.includes('verification-failed'))
    const first = file('first.log.gz', gzipSync(lines.slice(0, half).join('\n')))
    const second = file('second.log', lines.slice(half).join('\n'))
    const whole = await explain(failed, log)
    const joined = await powgate.text('explain', failed, '--log', second, '--log', first)
    assert.equal(storyOf(joined), storyOf(whole))
    const tellsNonce =
      /\n\nThe challenge is not in this log .*; by its nonce it was issued \d{4}-.*Z, difficulty 16, puzzle sha256\.\n\n.*verification-failed\n/
    assert.match(await explain(failed, second), tellsNonce)
  })

  test('--json has the steps in words and as they were logged', async () => {
    const { skipped, isCut, steps, read } = await powgate.json('explain', failed, '--log', log)
    assert.deepEqual(read.hosts, [hostname()])
    assert.ok(read.fromMs <= steps[0].record.time && read.toMs >= steps[1].record.time)
    assert.deepEqual([steps[0].record.nonce, skipped, isCut], [solution.nonce, 0, false])
    const titles = steps.map((step: { title: string }) => step.title)
    assert.deepEqual(titles, ['challenge-issued', 'verification-failed'])
    assert.deepEqual(steps[1].record.penalties, { webdriver: 0.6, solveTimeImpossible: 0.2 })
    assert.match(steps[1].lines[0], /^webdriver: /)
  })

  test('lines as container runtimes and journals wrap them', async () => {
    const lines = service.output.split('\n').filter(line => line.startsWith('{'))
    const expected = await explain(failed, log)
    const wrapped = {
      'compose.log': lines.map(line => `powgate-1  | ${line}`),
      'docker.log': lines.map(line => JSON.stringify({ log: `${line}\n`, stream: 'stdout' })),
      'journal.log': lines.map(line => JSON.stringify({ __CURSOR: 'x', MESSAGE: line })),
    }
    for (const [name, content] of Object.entries(wrapped)) {
      const text = await explain(failed, file(name, content.join('\n')))
      assert.equal(storyOf(text), storyOf(expected))
      assert.match(text, /\nRead: \d{4}-.*Z to \d{4}-.*Z, of /)
    }
  })

  test('what is not there, and what cannot be read: one line, exit code 1', async () => {
    const notMentioned =
      /^the log does not mention this visitor: with LOG_LEVEL info .* of visitors\. Read: \S+ /
    assert.match(await problem('no-such-request', log), notMentioned)
    const [unknownNonce, signature] = ['0'.repeat(32), token.slice(-43)]
    const line = await problem(token.replace(/\|[0-9a-f]{32}\|/, `|${unknownNonce}|`), log)
    assert.ok(!line.includes(unknownNonce) && !line.includes(signature), 'the token is repeated')
    const broken = file('broken.log', `{"event":"refused","requestId":"odd-1"\nodd-1 as text\n`)
    const noRecord =
      /\(2 lines mention it but are no JSON lines of powgate with a time: .* POWGATE_LOG_FORMAT=json\)/
    assert.match(await problem('odd-1', broken), noRecord)
    assert.match(await problem('x', join(dir, 'none')), /^--log: cannot read .*none: it does not exist$/)
    assert.match(await problem('x', dir), /^--log: cannot read .*: it is a directory$/)
    const notGzip = file('plain.gz', service.output)
    assert.match(await problem('x', notGzip), /^--log: cannot read .*it is not a gzip file, or damaged/)
    assert.match(await powgate.problem(1, 'explain x'), /does not mention/) // an empty standard input
  })

  test('calls that cannot be understood: one line, exit code 2, and no secret in it', async () => {
    const expected = /^VISITOR: expected a request id .*, a token in quotes, a nonce, or an IP address$/
    for (const wrong of [apiKey, 'two words', '', 'x'.repeat(129), token.slice(0, -1)])
      assert.match(await powgate.problem(2, 'explain', wrong, '--log', log), expected)
    assert.match(await powgate.problem(2, 'explain'), /^VISITOR: missing; expected a request id/)
    assert.match(await powgate.problem(2, 'explain x --log', ''), /^--log: expected the path of a file/)
    const dashes = await powgate.problem(2, 'explain x --log - --log -')
    assert.match(dashes, /^--log: - is given twice; standard input can be read once$/)
    const twice =
      /^unexpected argument "\[token of [0-9a-f]{32}\]"; usage: powgate explain VISITOR \[flags\]$/
    assert.match(await powgate.problem(2, 'explain', token, token), twice)
  })
})

describe('on logs of any kind', () => {
  const line = (fields: Record<string, unknown>) => JSON.stringify({ level: 30, time: 1, ...fields })

  test('requests without a nonce stand under their own site; a line of powgate without an event is not told', async () => {
    const lines = ['site_1', 'site_2', 'site_1'].map((site, time) =>
      line({ event: 'refused', time, site, ip: '192.0.2.5' }),
    )
    lines.push(line({ name: 'powgate', msg: 'powgate listens on http://192.0.2.5:8080' }))
    const text = await explain('192.0.2.5', file('sites.log', lines.join('\n')))
    assert.deepEqual(text.match(/^Requests to .*/gm), ['Requests to site_1', 'Requests to site_2'])
    assert.doesNotMatch(text, /lines mention it/)
  })

  test('a log far larger than one read: every line of the visitor is found, wherever reads end', async () => {
    const nonce = 'abcdef0123456789abcdef0123456789'
    const mib = 1 << 20 // a stream reads 64 KiB at a time, so a read ends at each of these
    const lines: string[] = []
    let bytes = 0
    let planted = 0
    // Lines of the visitor lie around the ends of six reads, among lines of all lengths up to 400 (37 and 400 share no divisor).
    for (let i = 0; bytes < 6 * mib; i++) {
      const isNearEnd = mib - (bytes % mib) < 600
      const text = isNearEnd
        ? line({ event: 'refused', requestId: `r-${planted++}`, nonce })
        : line({ event: 'refused', requestId: `other-${i}`, pad: 'x'.repeat((i * 37) % 400) })
      lines.push(text)
      bytes += text.length + 1
    }
    const path = file('large.log', lines.join('\n'))
    assert.ok(planted > 20)
    const { records, skipped } = await searchLogs([path], { text: nonce, kind: 'nonce' })
    const found = records.map(({ requestId }) => requestId).join()
    assert.deepEqual([found, skipped], [Array.from({ length: planted }, (_, i) => `r-${i}`).join(), 0])
    const byRequest = await searchLogs([path], { text: 'r-7', kind: 'id' })
    assert.equal(byRequest.records.length, planted)
    truncateSync(path, 0)
    truncateSync(path, 48 * mib) // NULs, as `copytruncate` may leave them
    appendFileSync(path, line({ event: 'refused', requestId: 'r-last' }))
    const before = process.cpuUsage()
    assert.equal((await searchLogs([path], { text: 'r-last', kind: 'id' })).records.length, 1)
    assert.ok(process.cpuUsage(before).user < 5_000_000) // microseconds
  })

  test('explain ADDRESS prints its last ten visits, in whatever order the logs are given', async () => {
    const logs = ['web1', 'web2'].map((hostname, host) => {
      const lines = Array.from({ length: 3000 }, (_, i) => {
        const visit = Math.floor(i / 2)
        const nonce = visit.toString(16).padStart(32, '0')
        // The visit's second line has another address, which only begins like the first: its nonce leads to it.
        const ip = i % 2 === 0 ? '2001:db8::1' : '2001:db8::11'
        return line({ event: 'refused', requestId: `r-${host}-${i}`, time: 10_000 + i, hostname, nonce, ip })
      })
      return file(`${hostname}.log`, `${lines.join('\n')}\n`)
    })
    for (const paths of [logs, logs.toReversed()]) {
      const { records, isCut, read } = await searchLogs(paths, { text: '2001:db8::1', kind: 'address' })
      assert.equal(new Set(records.map(({ nonce }) => nonce)).size, VISITS_SHOWN)
      assert.equal(records.length, 4 * VISITS_SHOWN) // two lines of each visit, at either host
      assert.equal(records[0]!.time, 12_980)
      assert.ok(isCut)
      assert.deepEqual([read.fromMs, read.toMs, [...read.hosts].sort()], [10_000, 12_999, ['web1', 'web2']])
    }
    const text = await explain('2001:DB8:0::1', logs[0]!)
    assert.match(text, /\nMore lines match; only the last 10 visits are shown\.\nRead: .* of web1; other /)
    assert.match(await problem('2001:db8::2', logs[1]!), /, of web2; other hosts/)
  })

  test('an address is found by its network in a log that names networks, and the story says so', async () => {
    const lines = ['203.0.113.0/24', '203.0.112.0/24', '2001:db8:1::/48'].map((ip, index) =>
      line({ event: 'refused', requestId: `r-${index}`, time: index, ip, endpoint: 'verify' }),
    )
    const path = file('networks.log', lines.join('\n'))
    for (const [address, network, id] of [
      ['203.0.113.7', '203.0.113.0/24', 'r-0'],
      ['2001:db8:1:2::3', '2001:db8:1::/48', 'r-2'],
    ] as const) {
      const text = await explain(address, path)
      const warning = `The log names networks: what follows is of ${network}, so perhaps of others`
      assert.ok(text.startsWith(warning))
      assert.ok(text.includes(`requestId ${id}, ip ${network}`) && !/requestId r-1/.test(text))
      const { steps, isOfNetwork } = await powgate.json('explain', address, '--log', path)
      assert.deepEqual([steps.length, isOfNetwork], [1, true])
    }
    const none = await problem('198.51.100.7', path)
    assert.match(none, /does not mention 198\.51\.100\.7 or its network 198\.51\.100\.0\/24/)
  })

  test('of an id that more requests bear than are kept, the newest are told, and that there are more', async () => {
    // A visit of more lines than RECORDS_MAX: the newest by their times are kept, wherever they stand.
    const used = Array.from({ length: 2000 }, (_, time) =>
      line({ event: 'token-redeemed', requestId: 'same', nonce: 'n-used', time }),
    )
    const refusal = line({ event: 'refused', requestId: 'same', time: 2001 })
    const last = line({ event: 'token-redeemed', requestId: 'same', nonce: 'n-last', time: 2002 })
    const path = file('visits.log', [last, refusal, ...used].join('\n'))
    const { records, isCut } = await searchLogs([path], { text: 'same', kind: 'id' })
    assert.deepEqual([records.length, records.at(-1)!.nonce, isCut], [1000, 'n-last', true]) // RECORDS_MAX of search.ts
    assert.equal(records.at(-2)!.event, 'refused')
  })

  test('a line of another version, or of nobody, is told as far as it goes and commands no terminal', async () => {
    const odd = [
      { event: 'verification-failed', score: 'high', reasons: 'all' },
      { event: 'verification-failed', score: 0.1, reasons: ['newReason', null], penalties: 7 },
      { event: 'challenge-issued', price: null },
      { event: 'refused', reason: 'new-reason', endpoint: '\x1b[2J' },
      { event: '\x1b]0;owned\x07', msg: 'x\ny' },
      { event: 'token-redeemed', time: 'soon' },
      { event: 'fault' },
    ].map(fields => line({ requestId: 'odd', ...fields }))
    const text = await explain('odd', file('odd.log', odd.join('\n')))
    assert.match(text, /^[\x20-\x7e\n]*$/)
    assert.equal(text.match(/^(\d{4}-|at an unknown time)/gm)?.length, odd.length)
    assert.match(text, /newReason/)
    assert.doesNotMatch(text, /undefined/)
  })

  test('the command that raises a limit names the site', () => {
    const refused = { event: 'refused', endpoint: 'siteverify', status: 429, reason: 'rate-limited' }
    const { lines } = stepOf({ ...refused, policy: 'address', site: UNKNOWN_SITE })
    assert.match(lines.join('\n'), new RegExp(`powgate site update ${UNKNOWN_SITE} --limit-redeem N`))
  })

  test('every refusal has words of its own', () => {
    const reasonOf = new Map<string, string>()
    for (const [reason, { status, code }] of Object.entries(OUTCOMES)) {
      const meaning = REFUSAL_WORDS[reason as Reason]
      const record: LogRecord = { event: 'refused', reason, code, status, endpoint: 'verify', time: 1 }
      const { lines } = stepOf(record)
      assert.ok(lines.at(-1)!.startsWith(`reason ${reason}, code ${code}, `), lines.at(-1))
      assert.equal(lines[0], meaning)
      assert.ok(!reasonOf.has(meaning), `${reason} and ${reasonOf.get(meaning)} mean the same`)
      reasonOf.set(meaning, reason)
    }
    assert.ok(REFUSAL_WORDS['nonce-underpriced'].includes(` over ${PRICING.lateBits} bit harder`))
    assert.ok(REFUSAL_WORDS['nonce-from-future'].includes(` more than ${CLOCK_SKEW_MS / 1000} s`))
  })

  test('every setting that the words name is one, and every limit is named', () => {
    const wordsOf = (name: (typeof ENDPOINT_NAMES)[number]) =>
      ENDPOINTS[name].limits.map(({ policy }) => limitWords(name, policy))
    const text = JSON.stringify([REFUSAL_WORDS, JUDGEMENT_WORDS, ENDPOINT_NAMES.map(wordsOf)])
    const named = new Set([...text.matchAll(/\bPOWGATE_\w+/g)].map(([name]) => name))
    const limits = Object.keys(SETTINGS).filter(name => name.startsWith('POWGATE_LIMIT_'))
    for (const name of [...named, ...limits]) assert.ok(name in SETTINGS && named.has(name), name)
  })
})

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { answerLength, isGoodAnswer } from '../../bench/http/answers.ts'
import { type LoadResult, type LoadSpec, runLoad } from '../../bench/http/load.ts'
import { parseOptions, UsageError } from '../../bench/http/options.ts'
import type { CaseReport } from '../../bench/http/report.ts'
import { buildTraffic, ENDPOINTS, type Endpoint } from '../../bench/http/traffic.ts'
import { spreadOf } from '../../bench/support/statistics.ts'

const MAIN = new URL('../../bench/http/main.ts', import.meta.url).pathname
const ROOT = new URL('../..', import.meta.url).pathname
const run = promisify(execFile)

function runBench(...args: string[]) {
  return run(process.execPath, ['--import', 'tsx', MAIN, ...args], { cwd: ROOT, timeout: 120_000 })
}

/** Any of these may be zero where so little is measured. */
const MAY_BE_ZERO: readonly string[] = ['othersBusy']

test('a short run measures every case on both stores', async () => {
  const { stdout } = await runBench('--seconds', '0.3', '--warmup', '0.1', '--repeat', '1', '--json')
  const { cases } = JSON.parse(stdout) as { cases: CaseReport[] }
  const expected = ENDPOINTS.flatMap(endpoint =>
    ['bare', 'embedded', 'redis'].map(server => [endpoint, server]),
  )
  assert.deepEqual(
    cases.map(({ endpoint, server }) => [endpoint, server]),
    expected,
  )
  for (const { endpoint, server, isOk, figures } of cases) {
    const name = `${endpoint} on ${server}`
    assert.ok(isOk, name)
    const names = ['requests', 'requestsPerSecond', 'workerUs', 'workerBusy', 'latencyP50Ms', 'latencyP99Ms']
    if (server !== 'bare') names.push('timesBare')
    if (server === 'redis') names.push('redisUs')
    for (const figure of names) assert.ok(figure in figures, `${name}: ${figure}`)
    for (const [figure, { min, median, max }] of Object.entries(figures)) {
      for (const value of [min, median, max]) {
        assert.ok(Number.isFinite(value), `${name}: ${figure} is ${value}`)
        assert.ok(value > 0 || MAY_BE_ZERO.includes(figure), `${name}: ${figure} is ${value}`)
      }
    }
  }
})

test('one endpoint from one address, as a table', async () => {
  const args = ['--seconds', '0.3', '--warmup', '0.1', '--repeat', '2', '--store', 'embedded']
  const { stdout } = await runBench(...args, '--endpoint', 'verify', '--direct')
  assert.match(stdout, /^endpoint {2}server .*\n-.*\nverify {4}bare .*\nverify {4}embedded .*\n\nMedian/)
})

test('mistakes on the command line are told in one line', async () => {
  await assert.rejects(runBench('--store', 'disk'), { code: 2, stderr: /^--store: expected one of .*\n$/ })
  assert.equal(parseOptions(['--help']), undefined)
  for (const args of [
    ['--seconds', '0'],
    ['--repeat', '1.5'],
    ['--connections', ''],
    ['--nonsense'],
    ['x'],
  ]) {
    assert.throws(() => parseOptions(args), UsageError, args.join(' '))
  }
})

const CHALLENGES = buildTraffic({
  endpoint: 'challenge',
  count: 5000,
  target: { secret: '', siteKey: '', apiKeys: [], storeEpoch: 0 },
  isForwarded: true,
})

/** Loads a server that answers as it is told. */
async function loadAnswering(answer: RequestListener, more: Partial<LoadSpec> = {}): Promise<LoadResult> {
  const server = createServer(answer).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const spec = { port, connections: 4, warmUpMs: 20, measureMs: 100, recycles: true, marker: 'good' }
  try {
    return await runLoad({ ...spec, pids: [process.pid], ...more }, CHALLENGES)
  } finally {
    server.close()
  }
}

test('bad answers are counted and shown, answers in pieces are put together', async () => {
  let requests = 0
  const result = await loadAnswering((_, response) => {
    requests++
    const body = requests % 10 === 0 ? 'bad ' : 'good'
    response.writeHead(200, { 'Content-Length': 8 }).write(body)
    setImmediate(() => response.end(body))
  })
  assert.ok(result.answers > 0 && result.answers <= requests)
  assert.equal(result.badAnswers, Math.floor(requests / 10))
  assert.match(result.badAnswer, /^HTTP\/1\.1 200 OK\r\n.*bad bad $/s)
  assert.ok(result.usages[0]!.cpuMs > 0 && result.usages[0]!.residentBytesAfter > 0)
  const refusing = await loadAnswering((_, response) =>
    response.writeHead(503, { 'Content-Length': 4 }).end('good'),
  )
  assert.ok(refusing.badAnswers >= refusing.answers)
})

test('the load ends when requests run out, and fails when nothing can be measured', async () => {
  const good: RequestListener = (_, response) => response.setHeader('Content-Length', 4).end('good')
  const result = await loadAnswering(good, { recycles: false, measureMs: 60_000, warmUpMs: 1 })
  assert.ok(result.ranOut && result.answers > 0 && result.answers <= CHALLENGES.count)
  const early = loadAnswering(good, { recycles: false, warmUpMs: 60_000 })
  await assert.rejects(early, /ran out before anything was measured/)
  await assert.rejects(
    loadAnswering((_, response) => response.destroy()),
    /a connection/,
  )
})

test('only a whole answer with status 200 and the marker is good', () => {
  const answer = (status: string, body: string) =>
    Buffer.from(`HTTP/1.1 ${status}\r\nDate: today\r\nContent-Length: ${body.length}\r\n\r\n${body}`)
  const marker = Buffer.from('"passed":true')
  const good = answer('200 OK', '{"passed":true}')
  assert.equal(answerLength(good, good.length), good.length)
  assert.equal(answerLength(good, good.indexOf('\r\n\r\n') + 3), undefined)
  assert.ok(isGoodAnswer(good, good.length, marker))
  assert.ok(!isGoodAnswer(good, good.length - 2, marker), 'the marker is left over from another answer')
  const unavailable = answer('503 Service Unavailable', '{"passed":true}')
  assert.ok(!isGoodAnswer(unavailable, unavailable.length, marker))
  const failed = answer('200 OK', '{"passed":false}')
  assert.ok(!isGoodAnswer(failed, failed.length, marker))
  assert.ok(isGoodAnswer(failed, failed.length, Buffer.alloc(0)))
})

test('no request comes twice, whether or not addresses differ', () => {
  const target = {
    secret: 'a secret of more than thirty-two characters',
    siteKey: 'site_0123456789ABCDEFabcdef',
    apiKeys: ['sk_01234567_0123456789012345678901234567890123456789012'],
    storeEpoch: 1,
  }
  const count = 20_000
  const distinct = (endpoint: Endpoint, isForwarded: boolean) => {
    const { bytes, ends } = buildTraffic({ endpoint, count, target, isForwarded })
    const requests = new Set<string>()
    for (let index = 0; index < count; index++) {
      requests.add(bytes.toString('latin1', index === 0 ? 0 : ends[index - 1], ends[index]))
    }
    return requests.size
  }
  assert.equal(distinct('challenge', true), count)
  assert.equal(distinct('verify', true), count)
  assert.equal(distinct('verify', false), count)
  assert.equal(distinct('verify-token', false), count)
})

test('a spread is the median and the range', () => {
  assert.deepEqual(spreadOf([3]), { median: 3, min: 3, max: 3 })
  assert.deepEqual(spreadOf([10, 1, 2]), { median: 2, min: 1, max: 10 })
  assert.deepEqual(spreadOf([4, 1, 2, 10]), { median: 3, min: 1, max: 10 })
})

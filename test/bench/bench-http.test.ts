import assert from 'node:assert/strict'
import { createServer, type RequestListener } from 'node:http'
import { connect } from 'node:net'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { LatencyRun } from '../../bench/http/figures.ts'
import { type Profile, profileReport } from '../../bench/http/profile.ts'
import { aimsOf, type CaseReport, type LatencyReport, reportLatencies } from '../../bench/http/report.ts'
import { eventually } from '../harness/eventually.ts'
import { answerLength, isGoodAnswer } from '../harness/load/connection.ts'
import {
  type LoadResult,
  type LoadSpec,
  type PacedResult,
  type PacedSpec,
  runLoad,
  runPacedLoad,
  sendOnce,
} from '../harness/load/loops.ts'
import { parseCounts } from '../harness/load/redis-counters.ts'
import {
  buildTraffic,
  ENDPOINTS,
  type Endpoint,
  requestAt,
  type TrafficSpec,
} from '../harness/load/traffic.ts'
import { type Spread, spreadOf } from '../harness/measure.ts'
import { listenAnywhere } from '../harness/ports.ts'
import { startBare } from '../harness/processes.ts'
import { runBench } from './run-bench.ts'

/** Any of these may be zero where so little is measured. */
const MAY_BE_ZERO =
  'othersBusy waitedShare ownDelayP99Ms youngPerSecond wholePerSecond longestCollectionMs'.split(' ')

function checkFigures(
  { endpoint, server, isOk, figures, notes }: CaseReport | LatencyReport,
  expected: readonly string[],
) {
  const name = `${endpoint} on ${server}`
  assert.ok(isOk, `${name}: ${notes}`)
  for (const figure of expected) assert.ok(figure in figures, `${name}: ${figure}`)
  for (const [figure, { min, median, max }] of Object.entries(figures)) {
    for (const value of [min, median, max]) {
      assert.ok(Number.isFinite(value), `${name}: ${figure} is ${value}`)
      assert.ok(value > 0 || MAY_BE_ZERO.includes(figure), `${name}: ${figure} is ${value}`)
    }
  }
}

test('a short run measures every case on both stores, at full load and at a fixed rate', async () => {
  const sizes = ['--seconds', '0.3', '--warmup', '0.1', '--repeat', '1', '--rate', '1000']
  const { stdout } = await runBench('http', ...sizes, '--json')
  const report = JSON.parse(stdout) as { cases: CaseReport[]; latencies: LatencyReport[] }
  const expected = ENDPOINTS.flatMap(endpoint =>
    ['bare', 'embedded', 'redis'].map(server => [endpoint, server]),
  )
  const namesOf = (reports: readonly (CaseReport | LatencyReport)[]) =>
    reports.map(({ endpoint, server }) => [endpoint, server])
  assert.deepEqual(namesOf(report.cases), expected)
  assert.deepEqual(
    namesOf(report.latencies),
    expected.filter(([, server]) => server !== 'bare'),
  )
  for (const measured of report.cases) {
    const names = 'requests requestsPerSecond cpuUs answerBytes workerBusy latencyP50Ms latencyP99Ms'.split(
      ' ',
    )
    if (measured.server !== 'bare') names.push('timesBare')
    if (measured.server === 'redis') names.push('redisUs', 'redisBatch', 'redisCommands', 'redisInBytes')
    checkFigures(measured, names)
    const { redisBatch } = measured.figures
    assert.ok(redisBatch === undefined || redisBatch.median >= 1, 'operations go out together, not in parts')
  }
  for (const endpoint of ENDPOINTS) {
    const sizes = report.cases.filter(one => one.endpoint === endpoint).map(one => one.figures.answerBytes!)
    const [bare, embedded] = sizes.map(({ median }) => Math.round(median))
    assert.equal(bare, embedded, `${endpoint}: the bare server answers with as many bytes`)
  }
  for (const measured of report.latencies) {
    checkFigures(measured, ['latencyP50Ms', 'latencyP99Ms', 'latencyMaxMs', 'bareP99Ms', 'loopDelayMaxMs'])
    const { requests, latencyP50Ms, latencyP999Ms, latencyMaxMs } = measured.figures
    assert.equal(requests!.median, 300, 'each request that was due is measured')
    assert.ok(latencyP50Ms!.median <= latencyP999Ms!.median)
    assert.ok(latencyP999Ms!.median <= latencyMaxMs!.median)
  }
})

test('one endpoint from one address, as tables', async () => {
  const sizes = ['--seconds', '0.3', '--warmup', '0.1', '--repeat', '2', '--store', 'embedded']
  const { stdout } = await runBench('http', ...sizes, '--endpoint', 'verify', '--direct', '--busy', '25')
  assert.match(stdout, /^At full load\n\nendpoint .*\n-.*\nverify +bare .*\nverify +embedded .*\n\nMedian/)
  assert.match(stdout, /\nLatency at fixed rates\n\nendpoint .*\n-.*\nverify +embedded .*\n/)
})

test('what HashWX adds to a /verify, by counters that are wrong', async () => {
  const sizes = ['--seconds', '0.3', '--warmup', '0.1', '--repeat', '1', '--store', 'embedded']
  const { stdout } = await runBench('http', '--puzzles', ...sizes, '--json')
  const [{ figures }] = JSON.parse(stdout).puzzles as [{ figures: Record<string, Spread> }]
  assert.deepEqual(Object.keys(figures), ['passing', 'sha256', 'hashwx', 'ratio'])
  assert.ok(figures.hashwx!.median > figures.sha256!.median)
})

test('a host: start, connections, refusals and two workers', async () => {
  const { stdout } = await runBench('http', '--host', '--repeat', '1', '--store', 'embedded', '--json')
  const [{ figures }] = JSON.parse(stdout).host as [{ figures: Record<string, Spread> }]
  const { connection, ...others } = figures
  assert.ok(connection!.median < 16, 'KiB of an open connection')
  assert.deepEqual(
    Object.entries(others).filter(([, { median }]) => !(median > 0)),
    [],
  )
})

const NOBODY = { secret: '', siteKey: '', apiKeys: [], storeEpoch: 0 }
const CHALLENGES = buildTraffic({ endpoint: 'challenge', count: 5000, target: NOBODY, isForwarded: true })
const FEW = buildTraffic({ endpoint: 'challenge', count: 2, target: NOBODY, isForwarded: true })

async function whileAnswering<Result>(
  answer: RequestListener,
  act: (port: number) => Promise<Result>,
): Promise<Result> {
  const server = createServer(answer)
  try {
    return await act(await listenAnywhere(server))
  } finally {
    server.close()
  }
}

/** Loads a server that answers as it is told. */
function loadAnswering(answer: RequestListener, more: Partial<LoadSpec> = {}): Promise<LoadResult> {
  const spec = { connections: 4, warmUpMs: 20, measureMs: 500, recycles: true, marker: 'good' }
  return whileAnswering(answer, port => runLoad({ ...spec, port, pids: [process.pid], ...more }, CHALLENGES))
}

/** The same at a fixed rate. */
function paceAnswering(answer: RequestListener, more: Partial<PacedSpec> = {}): Promise<PacedResult> {
  const spec = { connections: 4, warmUpMs: 50, measureMs: 200, recycles: true, marker: 'good' }
  return whileAnswering(answer, port =>
    runPacedLoad({ ...spec, port, pids: [process.pid], ratePerSecond: 500, ...more }, CHALLENGES),
  )
}

const GOOD: RequestListener = (_, response) => response.setHeader('Content-Length', 4).end('good')

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
  const result = await loadAnswering(GOOD, { recycles: false, measureMs: 60_000, warmUpMs: 1 })
  assert.ok(result.ranOut && result.answers > 0 && result.answers <= CHALLENGES.count)
  const early = loadAnswering(GOOD, { recycles: false, warmUpMs: 60_000 })
  await assert.rejects(early, /ran out before anything was measured/)
  await assert.rejects(
    loadAnswering((_, response) => response.destroy()),
    /a connection/,
  )
})

test('at a fixed rate every request that is due counts, from when it was due', async () => {
  let requests = 0
  const stallMs = 100
  const stalled = await paceAnswering(
    (request, response) => {
      const isStall = ++requests === 50 // within the measured time, which starts with the 26th
      setTimeout(() => GOOD(request, response as Parameters<RequestListener>[1]), isStall ? stallMs : 0)
    },
    { connections: 1 },
  )
  assert.equal(stalled.requests, 100)
  assert.equal(stalled.sent, 125)
  assert.equal(requests, 125)
  assert.equal(stalled.badAnswers, 0)
  // Histograms keep three figures.
  assert.ok(stalled.latencyMaxMs > stallMs * 0.99, `${stalled.latencyMaxMs} ms`)
  // About 50 requests come due during the stall; a closed loop would have seen a single slow one.
  assert.ok(stalled.waitedShare > 0.2, `${stalled.waitedShare} waited`)
  assert.ok(stalled.latencyP99Ms > stallMs / 2, `${stalled.latencyP99Ms} ms`)
  assert.ok(stalled.usages[0]!.cpuMs > 0)
})

test('a fixed rate ends early when requests run out, and fails if answers are missing', async () => {
  const short = await paceAnswering(GOOD, { recycles: false, ratePerSecond: 50_000 })
  assert.ok(short.ranOut)
  assert.equal(short.sent, CHALLENGES.count)
  assert.equal(short.requests, CHALLENGES.count - 2500)
  const bad = await paceAnswering((_, response) => response.writeHead(503, { 'Content-Length': 0 }).end())
  assert.equal(bad.badAnswers, 125)
  const none = { recycles: false, ratePerSecond: 100_000, warmUpMs: 50 }
  await assert.rejects(paceAnswering(GOOD, none), /too few requests/)
  await assert.rejects(
    paceAnswering((_, response) => response.destroy()),
    /a connection/,
  )
})

test('a rate that was not kept is told', () => {
  const figures = { wantedPerSecond: 1000, ratePerSecond: 900, ownDelayP99Ms: 9, waitedShare: 0.5 }
  const run = { endpoint: 'verify', server: 'redis', figures, failure: undefined, ranOut: false }
  const [report] = reportLatencies([run as unknown as LatencyRun])
  assert.deepEqual(report!.notes, [
    'RATE NOT KEPT: 90% of it',
    'the generator lagged (99%: 9.0 ms)',
    '50% waited for a connection',
  ])
})

test('a p99 of 5 ms above the bare server at half load is a missed aim', () => {
  const spread = (value: number) => ({ median: value, min: value, max: value })
  const at = (busy: number, p99: number): LatencyReport => {
    const figures = { latencyP99Ms: spread(p99), bareP99Ms: spread(1) }
    return { endpoint: 'verify', server: 'redis', busy, isOk: true, notes: [], figures }
  }
  const aims = aimsOf([], [at(25, 90), at(50, 6), at(50, 6.1)]).map(({ isMet, found }) => `${found} ${isMet}`)
  assert.deepEqual(aims, ['5.0 ms true', '5.1 ms false'])
})

test('a profile is summed up by part: natives count for their caller, hashes and collections apart', () => {
  const frame = (id: number, functionName: string, url = '', ...children: number[]) => {
    return { id, callFrame: { functionName, url, lineNumber: 0 }, children }
  }
  const profile: Profile = {
    nodes: [
      frame(1, '(root)', '', 2, 3, 4),
      frame(2, '(idle)'),
      frame(3, '(garbage collector)'),
      frame(4, 'prepare', 'file:///x/dist/endpoints/verify.js', 5, 6, 7),
      frame(5, 'oneShotDigest'),
      frame(6, 'put', 'file:///x/node_modules/lmdb/write.js', 8),
      frame(7, 'latin1Slice'),
      frame(8, ''),
    ],
    samples: [2, 3, 4, 5, 7, 8],
    timeDeltas: [1000, 10, 20, 30, 15, 25],
  }
  const { groups, functions } = profileReport('test', profile)
  const shares = groups.map(({ name, share }) => `${name} ${share * 100}`)
  assert.deepEqual(shares, ['parsing and domain 35', 'crypto 30', 'store 25', 'collection 10'])
  assert.equal(functions[0]!.name, 'oneShotDigest, called by prepare [crypto]')
})

test('requests that prepare a run are sent once each, as many as there is time for', async () => {
  const seen = new Map<string, number>()
  const spec = { connections: 4, msMax: 60_000, marker: 'good' }
  const sent = await whileAnswering(
    (request, response) => {
      const address = String(request.headers['x-forwarded-for'])
      seen.set(address, (seen.get(address) ?? 0) + 1)
      GOOD(request, response as Parameters<RequestListener>[1])
    },
    port => sendOnce({ ...spec, port }, CHALLENGES),
  )
  assert.equal(sent, CHALLENGES.count)
  assert.equal(seen.size, CHALLENGES.count)
  const few = await whileAnswering(GOOD, port => sendOnce({ ...spec, port, connections: 8 }, FEW))
  assert.equal(few, FEW.count)
  const slowly: RequestListener = (request, response) => {
    setTimeout(GOOD, 5, request, response)
  }
  const some = await whileAnswering(slowly, port => sendOnce({ ...spec, port, msMax: 1000 }, CHALLENGES))
  assert.ok(some > 0 && some < CHALLENGES.count)
  const bad = whileAnswering(GOOD, port => sendOnce({ ...spec, port, marker: 'better' }, CHALLENGES))
  await assert.rejects(bad, /not the expected one: HTTP\/1.1 200/)
})

test('what Redis counts is read, scripts apart from the commands in them', () => {
  const commands =
    'cmdstat_evalsha:calls=7,usec=9\r\ncmdstat_get:calls=30,usec=2\r\ncmdstat_config|get:calls=2,usec=1,'
  const stats = 'a:1\r\ntotal_net_input_bytes:123\r\ntotal_net_output_bytes:45\r\nexpired_keys:6\r\n'
  assert.deepEqual(parseCounts(stats, `# Commandstats\r\n${commands}`), {
    scriptCalls: 7,
    scriptUs: 9,
    commands: 32,
    inBytes: 123,
    outBytes: 45,
    expiredKeys: 6,
  })
  assert.throws(() => parseCounts('a:1', commands), /total_net_input_bytes/)
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

const TARGET = {
  secret: 'a secret of more than thirty-two characters',
  siteKey: 'site_0123456789ABCDEFabcdef',
  apiKeys: ['sk_01234567_0123456789012345678901234567890123456789012'],
  storeEpoch: 1,
}

function textsOf(spec: Omit<TrafficSpec, 'target'> & Partial<TrafficSpec>): string[] {
  const traffic = buildTraffic({ target: TARGET, ...spec })
  return Array.from({ length: spec.count }, (_, index) => requestAt(traffic, index).toString('latin1'))
}

test('no request comes twice, whether or not addresses differ', () => {
  const count = 20_000
  const distinct = (endpoint: Endpoint, more: Partial<TrafficSpec>) =>
    new Set(textsOf({ endpoint, count, isForwarded: true, ...more })).size
  assert.equal(distinct('challenge', {}), count)
  assert.equal(distinct('verify', {}), count)
  assert.equal(distinct('verify', { isForwarded: false }), count)
  assert.equal(distinct('verify-token', { isForwarded: false }), count)
})

test('a solution has the fields that the widget sends, in its order', () => {
  const [text] = textsOf({ endpoint: 'verify', count: 1, isForwarded: true })
  const body = text!.slice(text!.indexOf('\r\n\r\n') + 4)
  assert.equal(JSON.stringify(JSON.parse(body)), body)
  const fields = ['nonce', 'counter', 'solveTimeMs', 'fingerprintHash', 'environment']
  assert.deepEqual(Object.keys(JSON.parse(body)), fields)
})

test('the bare server reads a body to its end, and answers with as many bytes as it is told', async () => {
  const bare = await startBare(500)
  const socket = connect({ port: bare.port, host: '127.0.0.1' })
  try {
    let answer = ''
    socket.setEncoding('latin1').on('data', text => (answer += text))
    socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
    await eventually(60_000, 'the first answer', () => answer.length === 500)
    socket.write('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nab')
    await sleep(100)
    assert.equal(answer.length, 500)
    socket.write('cd')
    await eventually(60_000, 'the second answer', () => answer.length === 1000)
  } finally {
    socket.destroy()
    await bare.stop()
  }
})

test('whoever verifies has fetched a challenge, and later numbers are other visitors', () => {
  const address = (text: string) => /X-Forwarded-For: (\S+)/.exec(text)![1]!
  const verifications = textsOf({ endpoint: 'verify', count: 50, isForwarded: true })
  const challenges = textsOf({ endpoint: 'challenge', count: 100, isForwarded: true })
  assert.deepEqual(verifications.map(address), challenges.slice(0, 50).map(address), 'who comes, has fetched')
  const later = textsOf({ endpoint: 'challenge', count: 50, firstIndex: 50, isForwarded: true })
  assert.deepEqual(later.map(address), challenges.slice(50).map(address))
})

test('a spread is the median and the range', () => {
  assert.deepEqual(spreadOf([3]), { median: 3, min: 3, max: 3 })
  assert.deepEqual(spreadOf([10, 1, 2]), { median: 2, min: 1, max: 10 })
  assert.deepEqual(spreadOf([4, 1, 2, 10]), { median: 3, min: 1, max: 10 })
})

import assert from 'node:assert/strict'
import { createServer, type RequestListener } from 'node:http'
import { test } from 'node:test'
import type { CaseReport, LatencyReport } from '../../bench/http/report.ts'
import { type PacedResult, type PacedSpec, runPacedLoad } from '../harness/load/loops.ts'
import { buildTraffic, ENDPOINTS } from '../harness/load/traffic.ts'
import { listenAnywhere } from '../harness/ports.ts'
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
    if (measured.server === 'redis') names.push('redisUs')
    checkFigures(measured, names)
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

const NOBODY = { secret: '', siteKey: '', apiKeys: [], storeEpoch: 0 }
const CHALLENGES = buildTraffic({ endpoint: 'challenge', count: 5000, target: NOBODY, isForwarded: true })

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
function paceAnswering(answer: RequestListener, more: Partial<PacedSpec> = {}): Promise<PacedResult> {
  const spec = { connections: 4, warmUpMs: 50, measureMs: 200, recycles: true, marker: 'good' }
  return whileAnswering(answer, port =>
    runPacedLoad({ ...spec, port, pids: [process.pid], ratePerSecond: 500, ...more }, CHALLENGES),
  )
}

const GOOD: RequestListener = (_, response) => response.setHeader('Content-Length', 4).end('good')

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

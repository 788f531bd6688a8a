import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { readMeasurements } from '../../bench/capacity/inputs.ts'
import { ASSUMED, capacityOf, type Measurements, type StoreCosts } from '../../bench/capacity/model.ts'
import {
  type CapacityPage,
  END_MARKER,
  markdownOf,
  reportOf,
  START_MARKER,
  withPage,
} from '../../bench/capacity/page.ts'
import { reportHtml } from '../../bench/report/html.ts'
import { UsageError } from '../harness/command-line.ts'
import { temporaryDir } from '../harness/temporary.ts'
import { runBench } from './run-bench.ts'

const folder = temporaryDir('bench')

function file(name: string, content: unknown): string {
  const path = join(folder, name)
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content))
  return path
}

const exactly = (value: number) => ({ median: value, min: value, max: value })

/** As bench:http writes them. */
function httpFigures(servers: readonly string[] = ['bare', 'embedded', 'redis']) {
  const cases = ['challenge', 'verify', 'verify-token'].flatMap((endpoint, index) =>
    servers.map(server => ({
      endpoint,
      server,
      isOk: true,
      notes: [],
      figures: {
        cpuUs: { median: 10 * (index + 1), min: 9 * (index + 1), max: 12 * (index + 1) },
        ...(server === 'redis' && { redisUs: exactly(5 * (index + 1)) }),
      },
    })),
  )
  return { node: 'v20.1.2', options: {}, cases }
}

const SOLVER = {
  surroundings: { cpu: 'a browser CPU' },
  rates: [
    { contender: 'simd', threads: 2, hashesPerSecond: exactly(33e6) },
    { contender: 'scalar', threads: 1, hashesPerSecond: exactly(9e6) },
    { contender: 'simd', threads: 1, hashesPerSecond: exactly(16e6) },
  ],
}
const STORE = { memory: { bytesPerActiveAddress: { typical: 512, atLimits: 1024 } } }
const MICRO = { rows: [{ name: 'whole verification, no store', ways: [{ cpuNs: exactly(6500) }] }] }

const COSTS: StoreCosts = {
  challenge: { workerUs: { median: 10, min: 9, max: 12 }, redisUs: exactly(5) },
  verify: { workerUs: { median: 20, min: 18, max: 24 }, redisUs: exactly(10) },
  'verify-token': { workerUs: { median: 30, min: 27, max: 36 }, redisUs: exactly(15) },
}
const FLOW = { workerUs: { median: 60, min: 54, max: 72 }, redisUs: exactly(30) }

const MEASUREMENTS: Measurements = {
  http: { redis: COSTS },
  browserHashesPerSecond: exactly(16e6),
  bytesPerActiveAddress: { typical: 512, atLimits: 1024 },
  verificationUs: exactly(6.5),
}

function pageOf(measurements: Measurements): CapacityPage {
  const assumptions = { ...ASSUMED, nativeHashesPerSecond: 36e6, pricePerHour: 0.04 }
  const surroundings = { cpu: 'a CPU', node: 'v20.1.2', date: '2026-01-31', sources: ['`bench:http`'] }
  return { surroundings, assumptions, measurements, capacity: capacityOf(measurements, assumptions) }
}

test('the page has every figure, and the assumptions first', () => {
  const text = markdownOf(pageOf(MEASUREMENTS))
  assert.match(
    text,
    /^Assumed and measured:\n\n- A visitor makes one challenge, one verification and one redemption/,
  )
  // 10,000/s x 60 us = 0.6 cores, which at 60 % busy is one; 0.72 take two. Memory: 10,000/s x 300 s x 512 bytes.
  // 2^18 hashes at 16 MH/s are 16.4 ms of an attacker, and a visitor is 90 us of ours.
  for (const row of [
    '| 10,000 | 1 (1-2) | 1 | 1.43 GiB |',
    '| 1,000,000 | 100 (90-120) | 50 | 143 GiB |',
    '| Redis | 90 (84-102) | 0.00167 (0.00156-0.00189) | 10,000 |',
    '| typical | 0.477 GiB |',
    '| all at their limits | 0.954 GiB |',
    '| 18 (default) | 262,144 | 0.0164 | 182 | 0.00728 | 80.9 |',
    '| 28 | 268,435,456 | 16.8 | 186,000 | 7.46 | 82,900 |',
  ]) {
    assert.ok(text.includes(`\n${row}`), row)
  }
  assert.match(text, /60 % of the time/)
  assert.match(text, /Our CPU time for a visitor is 90 us, of workers and Redis together \(Redis\)/)
  assert.match(text, /making its token take 6\.5 us/)
  assert.ok(reportHtml(reportOf(pageOf(MEASUREMENTS))).includes('>186,000<'))
})

test('what was not measured is left out, and said to be', () => {
  const least = markdownOf(pageOf({ http: { embedded: COSTS } }))
  assert.match(least, /The rate of browsers was not measured/)
  assert.match(least, /Redis memory was not measured/)
  assert.doesNotMatch(least, /What a load takes|browser, WASM SIMD|NaN|undefined/)
  assert.throws(() => capacityOf({ http: {} }, { ...ASSUMED, pricePerHour: 1 }), RangeError)
})

test('figures are read from what the benches write', () => {
  const files = {
    http: file('http.json', httpFigures()),
    solver: file('solver.json', SOLVER),
    store: file('store.json', STORE),
    micro: file('micro.json', MICRO),
  }
  const { http, ...others } = MEASUREMENTS
  const { http: readHttp, ...read } = readMeasurements(files)
  assert.deepEqual(readHttp.redis, http.redis)
  assert.deepEqual(Object.keys(readHttp), ['embedded', 'redis'])
  assert.deepEqual(read, others)
})

test('a file of another shape is told in one line that names it', () => {
  const failed = httpFigures()
  failed.cases[1]!.isOk = false
  const bad: [option: 'http' | 'solver' | 'store' | 'micro', content: unknown, problem: RegExp][] = [
    ['http', 'no JSON', /JSON/],
    ['http', httpFigures(['bare']), /expected all three endpoints on at least one store/],
    ['http', failed, /the bench failed at challenge on embedded/],
    ['solver', { rates: SOLVER.rates.slice(0, 2) }, /expected the rate of "simd" on 1 thread/],
    ['store', {}, /expected a number above 0 at "memory\.bytesPerActiveAddress\.typical", got undefined/],
    ['store', { memory: { bytesPerActiveAddress: { typical: 1, atLimits: 'x' } } }, /atLimits", got "x"/],
    ['micro', { rows: [] }, /expected "whole verification, no store" in "rows"/],
  ]
  for (const [option, content, problem] of bad) {
    const path = file('bad.json', content)
    const reading = () => readMeasurements({ [option]: path })
    assert.throws(reading, (error: Error) => {
      assert.ok(error instanceof UsageError)
      assert.ok(error.message.startsWith(`--${option}: ${path}: `) && !error.message.includes('\n'))
      assert.match(error.message, problem)
      return true
    })
  }
})

test('the page replaces what is between its markers, and nothing else', () => {
  const before = `# powgate\n\n${START_MARKER}\nold\n${END_MARKER}\n\nMIT licence.\n`
  const expected = `# powgate\n\n${START_MARKER}\n\nnew $& $1\n\n${END_MARKER}\n\nMIT licence.\n`
  assert.equal(withPage(before, 'new $& $1'), expected)
  assert.equal(withPage(expected, 'new $& $1'), expected)
  for (const text of ['', START_MARKER, `${END_MARKER}${START_MARKER}`, before + before]) {
    assert.equal(withPage(text, 'new'), undefined)
  }
})

test('from files to a page, to JSON and to a report', async () => {
  const http = file('http.json', httpFigures())
  const page = file('page.md', `before\n${START_MARKER}\n${END_MARKER}\nafter\n`)
  const report = join(folder, 'report.html')
  const args = ['--http', http, '--solver', file('solver.json', SOLVER), '--price', '0.1']
  const { stdout } = await runBench('capacity', ...args, '--json', '--write', page, '--report', report)
  const { capacity, assumptions, surroundings } = JSON.parse(stdout) as CapacityPage
  assert.equal(assumptions.pricePerHour, 0.1)
  assert.match(surroundings.sources[1]!, /^`bench:solver` of \d{4}-\d\d-\d\d, a browser CPU$/)
  assert.deepEqual(capacity.flows.redis, FLOW)
  for (const { attackers } of capacity.defences) {
    for (const { cpuSeconds, timesOurs } of Object.values(attackers)) {
      assert.ok(cpuSeconds > 0 && Number.isFinite(cpuSeconds) && Number.isFinite(timesOurs))
    }
  }
  assert.match(
    readFileSync(page, 'utf8'),
    /^before\n<!-- capacity[^>]*-->\n\nAssumed.*\n\n<!-- \/capacity -->\nafter\n$/s,
  )
  assert.match(readFileSync(report, 'utf8'), /100 \(90-120\)/)
})

test('mistakes on the command line are told in one line', async () => {
  const http = file('http.json', httpFigures())
  await assert.rejects(runBench('capacity', '--http', http, '--write', file('plain.md', 'no markers')), {
    code: 2,
    stderr: /^--write: .*plain\.md has not once .*\n$/,
  })
  await assert.rejects(runBench('capacity', '--http', join(folder, 'missing.json')), {
    code: 2,
    stderr: /^--http: .*missing\.json: ENOENT.*\n$/,
  })
  await assert.rejects(runBench('capacity', '--store', http), { code: 2, stderr: /^--http: expected a file/ })
})

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { startService } from '../../bench/http/server.ts'
import { checkAddresses, fillAddresses, fillSites } from '../../bench/scale/fill.ts'
import type { Cost, Measured } from '../../bench/scale/measure.ts'
import { parseOptions } from '../../bench/scale/options.ts'
import { type Series, seriesOf, steps } from '../../bench/scale/points.ts'
import { reportSeries, type SeriesReport } from '../../bench/scale/report.ts'
import { tablesText } from '../../bench/scale/tables.ts'
import { UsageError } from '../../bench/support/arguments.ts'
import { loadConfig } from '../../src/config/config.ts'
import { openSiteStore } from '../../src/store/open-sites.ts'
import { STORE_KINDS } from '../harness/service.ts'

const MAIN = new URL('../../bench/scale/main.ts', import.meta.url).pathname
const ROOT = new URL('../..', import.meta.url).pathname
const run = promisify(execFile)

function runBench(...args: string[]) {
  return run(process.execPath, ['--import', 'tsx', MAIN, ...args], { cwd: ROOT, timeout: 120_000 })
}

const SMALL = ['--seconds', '0.3', '--warmup', '0.1', '--repeat', '1', '--connections', '32']

async function seriesFrom(...args: string[]): Promise<SeriesReport[]> {
  const { stdout } = await runBench(...SMALL, ...args, '--json')
  const { series } = JSON.parse(stdout) as { series: SeriesReport[] }
  for (const { part, endpoint, points } of series) {
    for (const { server, size, isOk, notes, figures, ratios } of points) {
      const name = `${part} ${size}: ${endpoint} on ${server}`
      assert.ok(isOk, `${name}: ${notes}`)
      assert.ok(ratios !== undefined, name)
      for (const figure of ['requests', 'requestsPerSecond', 'workerUs', 'workerBusy']) {
        assert.ok(figure in figures, `${name}: ${figure}`)
      }
      for (const [figure, { min, median, max }] of Object.entries({ ...figures, ...ratios })) {
        for (const value of [min, median, max]) {
          assert.ok(Number.isFinite(value), `${name}: ${figure} is ${value}`)
          assert.ok(value > 0 || figure === 'othersBusy' || figure === 'primaryUs', `${name}: ${figure}`)
        }
      }
    }
  }
  return series
}

const named = (all: readonly SeriesReport[]) =>
  all.map(({ part, endpoint, points }) => [
    part,
    endpoint,
    ...points.map(point => [point.server, point.size]),
  ])

test('workers and a Cluster are measured, each process apart', async () => {
  const args = ['--only', 'workers', '--only', 'cluster', '--store', 'redis', '--workers', '2']
  const [workers, cluster, ...none] = await seriesFrom(...args, '--endpoint', 'verify')
  assert.deepEqual(none, [])
  assert.deepEqual(named([workers!, cluster!]), [
    ['workers', 'verify', ['redis', 1], ['redis', 2]],
    ['cluster', 'verify', ['redis', 1], ['cluster', 3]],
  ])
  const [one, two] = workers!.points
  for (const { figures } of [one!, two!]) assert.ok(figures.primaryUs!.median >= 0)
  assert.equal(one!.ratios!.workerUs.median, 1)
  for (const { figures } of [...workers!.points, ...cluster!.points]) {
    assert.ok(figures.redisUs!.median > 0 && figures.redisBatch!.median >= 1)
  }
  assert.deepEqual([workers!.verdicts, cluster!.verdicts], [[], []])
})

test('addresses and sites are filled in, and the growth of costs is judged', async () => {
  const args = ['--only', 'addresses', '--only', 'sites', '--max-addresses', '2000', '--max-sites', '1000']
  const series = await seriesFrom(...args, '--store', 'embedded', '--endpoint', 'verify')
  assert.deepEqual(named(series), [
    ['addresses', 'verify', ['embedded', 1000], ['embedded', 2000]],
    ['sites', 'verify', ...[1, 10, 100, 1000].map(size => ['embedded', size])],
  ])
  const [addresses, sites] = series
  for (const { figures } of addresses!.points) assert.ok(figures.fillSeconds!.median > 0)
  assert.equal(sites!.points[2]!.figures.coldPerSecond, undefined, 'so few are known at once')
  assert.ok(sites!.points[3]!.figures.coldPerSecond!.median > 0)
  for (const { verdicts } of series) {
    assert.deepEqual(
      verdicts.map(({ process }) => process),
      ['worker'],
    )
  }
})

test('redemptions of several sites on Redis, as a table and as a web page', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'powgate-bench-'))
  try {
    const file = join(directory, 'report.html')
    const args = ['--only', 'sites', '--max-sites', '2', '--store', 'redis', '--endpoint', 'verify-token']
    const { stdout } = await runBench(...SMALL, ...args, '--report', file)
    assert.match(
      stdout,
      /^Sites\n\nendpoint .*\n-.*\nverify-token {2}redis +1 .*\nverify-token {2}redis +2 .*\n/,
    )
    assert.match(stdout, /\nverify-token on redis, Redis CPU: flat within 15 %: (yes|no) \(at worst \d/)
    const page = readFileSync(file, 'utf8')
    assert.match(page, /^<!doctype html>/i)
    assert.ok(page.includes('verify-token on redis, worker'))
  } finally {
    rmSync(directory, { recursive: true })
  }
})

test('mistakes on the command line are told in one line', async () => {
  await assert.rejects(runBench('--only', 'everything'), {
    code: 2,
    stderr: /^--only: expected one of .*\n$/,
  })
  assert.equal(parseOptions(['--help']), undefined)
  for (const args of [
    ['--seconds', '11'],
    ['--workers', '0'],
    ['--max-addresses', '999'],
    ['--max-sites', '0.5'],
    ['--report', '/no/such/directory/report.html'],
    ['x'],
  ]) {
    assert.throws(() => parseOptions(args), UsageError, args.join(' '))
  }
})

test('series differ in one thing, and end at what is asked for', () => {
  assert.deepEqual(steps(1, 1, 2), [1])
  assert.deepEqual(steps(1, 6, 2), [1, 2, 4, 6])
  assert.deepEqual(steps(1000, 100_000, 10), [1000, 10_000, 100_000])
  const all = seriesOf(parseOptions(['--workers', '4'])!)
  const count = (part: string) => all.filter(series => series.part === part).length
  assert.deepEqual(['workers', 'cluster', 'addresses', 'sites'].map(count), [6, 3, 4, 6])
  for (const { part, points } of all) {
    const sizes = points.map(({ size }) => size)
    assert.deepEqual(
      sizes,
      sizes.toSorted((a, b) => a - b),
    )
    if (part !== 'cluster') assert.equal(new Set(points.map(({ server }) => server)).size, 1)
    for (const { addresses, sites, workers, size } of points) {
      const differing = { workers, cluster: size, addresses, sites }[part]
      assert.equal(differing, size)
    }
  }
})

function measured(workerUs: number, more: Partial<Cost> = {}): Measured {
  const busy = { primaryUs: 0, workerBusy: 1, generatorBusy: 1, othersBusy: 0 }
  const cost = { requests: 1, requestsPerSecond: 1e6 / workerUs, workerUs, ...busy, ...more }
  return { cost, failure: undefined, ranOut: false }
}

test('costs are compared within a turn, and flat means within 15 % of the first point', () => {
  const point = { server: 'redis', workers: 1, addresses: 0 } as const
  const points = [1, 10].map(sites => ({ ...point, sites, size: sites }))
  const series: Series = { part: 'sites', endpoint: 'verify', points }
  // The machine is twice as slow in the second turn, which no ratio shows.
  const report = reportSeries(series, [
    [measured(10, { redisUs: 4 }), measured(11, { redisUs: 5 })],
    [measured(20, { redisUs: 8 }), measured(22, { redisUs: 10 })],
  ])
  assert.deepEqual(report.points[1]!.ratios!.workerUs, { median: 1.1, min: 1.1, max: 1.1 })
  assert.deepEqual(report.points[1]!.figures.workerUs, { median: 16.5, min: 11, max: 22 })
  assert.deepEqual(report.verdicts, [
    { process: 'worker', worstRatio: 1.1, isFlat: true },
    { process: 'Redis', worstRatio: 1.25, isFlat: false },
  ])
  const text = tablesText([report], parseOptions([])!)
  assert.match(text, /worker CPU: flat within 15 %: yes/)
  assert.match(text, /Redis CPU: flat within 15 %: no \(at worst 1.25 x one\)/)

  const failed: Measured = { cost: undefined, failure: 'an answer was bad', ranOut: false }
  const broken = reportSeries(series, [[measured(10), failed]])
  assert.deepEqual(broken.points[1]!.notes, ['FAILED: an answer was bad'])
  assert.equal(broken.points[1]!.isOk, false)
  assert.equal(broken.points[1]!.ratios, undefined)
  assert.deepEqual(broken.verdicts, [], 'nothing is flat of which a point is missing')
})

for (const kind of STORE_KINDS) {
  test(`what is filled in is in the store: ${kind}`, async () => {
    const service = await startService(kind, true)
    try {
      await assert.rejects(checkAddresses(service, 50), /had forgotten addresses: 50 of 50/)
      await fillAddresses(service, 5000)
      await checkAddresses(service, 5000)
      const keys = await fillSites(service, 1200)
      assert.equal(new Set(keys.map(({ siteKey }) => siteKey)).size, 1200)
      const store = await openSiteStore(loadConfig(service.env))
      try {
        const sites = new Set((await store.listSites()).map(({ siteKey }) => siteKey))
        const ofApiKeys = new Set((await store.listApiKeys()).map(({ siteKey }) => siteKey))
        for (const { siteKey } of keys) assert.ok(sites.has(siteKey) && ofApiKeys.has(siteKey))
      } finally {
        await store.close()
      }
    } finally {
      await service.stop()
    }
  })
}

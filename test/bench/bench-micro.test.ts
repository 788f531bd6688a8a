import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { promisify } from 'node:util'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { type Case, prepareOf, type SyncWork, variantsOf } from '../../bench/micro/case.ts'
import { CASES } from '../../bench/micro/cases/all.ts'
import { PIPELINE } from '../../bench/micro/cases/endpoints.ts'
import { ONE_SHOT_HASH, PROOF } from '../../bench/micro/cases/pow.ts'
import type { Figures } from '../../bench/micro/child.ts'
import { garbageOf } from '../../bench/micro/garbage.ts'
import { NOW_MS, SITE_KEY, visits } from '../../bench/micro/inputs.ts'
import {
  isNaiveChallenge,
  isNaiveProof,
  naiveChallenge,
  naiveClaims,
  naiveToken,
  naiveWindow,
} from '../../bench/micro/naive.ts'
import { parseOptions } from '../../bench/micro/options.ts'
import { checkedPass } from '../../bench/micro/passes.ts'
import { aimsOf, type MicroReport, rowOf } from '../../bench/micro/report.ts'
import { measureAll } from '../../bench/micro/runs.ts'
import { reportText } from '../../bench/micro/tables.ts'
import { timingOf } from '../../bench/micro/timing.ts'
import { UsageError } from '../../bench/support/arguments.ts'
import { installPeers } from '../../bench/support/peers.ts'
import { checkProof } from '../../src/domain/pow.ts'

const BENCH = new URL('../../bench', import.meta.url).pathname
const folder = mkdtempSync(join(tmpdir(), 'powgate-bench-'))
after(() => rmSync(folder, { recursive: true }))

function runBench(...args: string[]) {
  const main = join(BENCH, 'micro/main.ts')
  return promisify(execFile)(process.execPath, ['--import', 'tsx', main, ...args], { timeout: 120_000 })
}

test('every way to do every step gives right results, pass after pass', async () => {
  installPeers(() => {})
  assert.equal(new Set(CASES.map(({ name }) => name)).size, CASES.length)
  for (const one of CASES) {
    const variants = variantsOf(one, true)
    assert.equal(variants.length, 1 + (one.naive ? 1 : 0) + (one.peers?.length ?? 0))
    for (const variant of variants) {
      const work = await prepareOf(one, variant)()
      assert.ok(work.count >= 100, `${one.name} (${variant}) has ${work.count} inputs`)
      await checkedPass(work)
      const { ns, typicalNs, cpuNs, operations } = await timingOf(work, 1)
      for (const figure of [ns, typicalNs, cpuNs]) {
        assert.ok(figure > 0 && Number.isFinite(figure), `${one.name} (${variant})`)
      }
      assert.ok(operations >= 3 * work.count && operations % work.count === 0)
    }
  }
})

const measured = ['ns', 'typicalNs', 'cpuNs', 'perSecond', 'garbageBytes'] as const

test('a short run, as JSON and as a page', async () => {
  const page = join(folder, 'report.html')
  const args = ['--milliseconds', '5', '--repeat', '1', '--json', '--report', page]
  const { stdout, stderr } = await runBench(...args, '--filter', 'redemption', '--filter', 'PROOF')
  const { rows, aims, surroundings } = JSON.parse(stdout) as MicroReport
  assert.deepEqual(
    rows.map(({ name, naive, peers }) => [name, naive?.label, ...peers.map(({ label }) => label)]),
    [
      ['whole redemption, answered', 'plain', '@cap.js/server'],
      [PROOF, 'plain'],
      [ONE_SHOT_HASH, undefined],
    ],
  )
  for (const { name, ours, naive, peers } of rows) {
    for (const way of [ours, ...(naive ? [naive] : []), ...peers]) {
      for (const figure of measured) {
        const { min, median, max } = way[figure]
        assert.ok(0 < min && min <= median && median <= max && Number.isFinite(max), `${name}: ${figure}`)
      }
    }
    for (const { timesFaster, timesLessCpu } of [...(naive ? [naive] : []), ...peers]) {
      assert.ok(timesFaster.min > 0 && timesLessCpu.min > 0, name)
    }
  }
  assert.equal(aims.length, 2)
  assert.deepEqual(Object.keys(surroundings.peers), ['@cap.js/server', 'altcha-lib'])
  assert.match(stderr, /^round 1 of 1: whole redemption, answered\n/)
  const html = readFileSync(page, 'utf8')
  for (const text of ['@cap.js/server', PROOF, 'aim: ']) assert.ok(html.includes(text), text)
  const compiled = readdirSync(join(BENCH, 'dist')).filter(name => name.startsWith('micro-'))
  assert.deepEqual(compiled, [], 'what was compiled is removed')
})

test('a short run without peers, as a table', async () => {
  const args = ['--milliseconds', '2', '--repeat', '1', '--no-peers', '--filter', 'whole challenge']
  const { stdout } = await runBench(...args)
  assert.match(stdout, /^area .*\n-.*\nendpoints {2}whole challenge, answered .*\n\n.* cores, Node\.js /)
  assert.doesNotMatch(stdout, /altcha|cap\.js|aim:/)
})

test('mistakes on the command line are told in one line', async () => {
  await assert.rejects(runBench('--filter', 'nothing like it'), {
    code: 2,
    stderr: /^--filter: expected a part of one of: whole .*\n$/,
  })
  assert.equal(parseOptions(['--help']), undefined)
  for (const args of [['--repeat', '0'], ['--milliseconds', '1.5'], ['--report'], ['--nonsense'], ['x']]) {
    assert.throws(() => parseOptions(args), UsageError, args.join(' '))
  }
})

function syncWork(count: number, step: SyncWork['step']): SyncWork {
  return { kind: 'sync', count, step }
}

test('a step with a wrong result has no figures', async () => {
  const work = syncWork(100, index => (index === 7 ? 0 : 1))
  await assert.rejects(checkedPass(work), /^Error: 1 of 100 results are wrong$/)
  await assert.rejects(timingOf(work, 1), /1 of 100 results are wrong/)
  const late = { kind: 'async', count: 100, step: async (index: number) => (index > 97 ? 0 : 1) } as const
  await assert.rejects(timingOf(late, 1), /2 of 100 results are wrong/)
})

test('garbage is counted to the byte, on the heap and in buffers outside of it', async () => {
  setFlagsFromString('--expose-gc')
  globalThis.gc = runInNewContext('gc') as NodeJS.GCFunction
  const held: unknown[] = new Array(4)
  const about = async (step: SyncWork['step']) => {
    const work = syncWork(500, step)
    for (let pass = 0; pass < 2000; pass++) await checkedPass(work)
    return await garbageOf(work)
  }
  assert.ok((await about(index => (index >= 0 ? 1 : 0))) < 1)
  const pair = await about(index => {
    held[index & 3] = { index, more: held } // an object's three words, and two fields
    return 1
  })
  assert.ok(Math.abs(pair - 40) < 1, `an object of 40 bytes is found to be ${pair}`)
  const buffer = await about(index => {
    held[index & 3] = new ArrayBuffer(1000)
    return 1
  })
  assert.ok(buffer >= 1000 && buffer < 1400, `an array buffer of 1000 bytes is found to be ${buffer}`)
})

test('the plain ways judge as the service does', () => {
  for (const { nonce, counter } of visits().slice(0, 50)) {
    for (let bits = 0; bits <= 12; bits++) {
      assert.equal(isNaiveProof(nonce, counter, bits), checkProof(nonce, counter, bits), `${bits} bits`)
    }
  }
  const challenge = naiveChallenge(SITE_KEY, '203.0.113.7', 18, NOW_MS)
  assert.ok(isNaiveChallenge(challenge, SITE_KEY, '203.0.113.7'))
  assert.ok(!isNaiveChallenge(challenge, SITE_KEY, '203.0.113.8'))
  assert.ok(!isNaiveChallenge({ ...challenge, difficulty: 0 }, SITE_KEY, '203.0.113.7'))
  const claims = { iat: 1, exp: 2, jti: 'a', sub: SITE_KEY, ip: '::1', score: 0.9 }
  const token = naiveToken(claims)
  assert.deepEqual(naiveClaims(token), claims)
  assert.equal(naiveClaims(`${token.slice(0, -3)}AAA`), undefined)
  assert.deepEqual(naiveWindow([0, 1, 60_000], 60_000, 3), [1, 60_000, 60_000])
  assert.equal(naiveWindow([1, 60_000], 60_000, 2), undefined)
})

const idle: SyncWork = syncWork(100, () => 1)

function caseNamed(name: string, more: Partial<Case> = {}): Case {
  return { name, area: 'an area', source: 'src/x.ts', step: () => idle, ...more }
}

function figuresOf(ns: number, garbageBytes: number): Figures {
  return { ns, typicalNs: ns, cpuNs: 2 * ns, operations: 100, garbageBytes, othersBusy: 0 }
}

const peers = [{ label: 'a package', note: 'a remark', step: () => idle }]

test('ways take turns, and ratios are of the same round', async () => {
  const cases = [caseNamed('a', { naive: () => idle, peers }), caseNamed('b')]
  const calls: string[] = []
  const measure = async (name: string, variant: string) => {
    calls.push(name + variant)
    const round = calls.filter(call => call === name + variant).length
    return figuresOf(variant === 'ours' ? 100 * round : 1000 * round ** 2, 8)
  }
  const options = { cases, repeat: 3, milliseconds: 1, hasPeers: true }
  const rows = (await measureAll(options, measure, () => {})).map(rowOf)
  assert.deepEqual(calls.slice(0, 5), ['aours', 'anaive', 'a0', 'bours', 'aours'])
  assert.deepEqual(rows[0]!.naive!.timesFaster, { median: 20, min: 10, max: 30 })
  assert.deepEqual(rows[0]!.peers[0]!.ns, { median: 4000, min: 1000, max: 9000 })
  assert.equal(rows[0]!.ours.perSecond.median, 5e6)
  assert.equal(rows[0]!.ours.operations, 300)
  assert.equal(rows[1]!.naive, undefined)
})

function textOf(proof: Figures, hash: Figures, pipeline: Figures): string {
  const run = (name: string, figures: Figures) =>
    rowOf({
      case: caseNamed(name, { peers }),
      figures: new Map([
        ['ours', [figures]],
        ['0', [figures]],
      ]),
    })
  const rows = [run(PROOF, proof), run(ONE_SHOT_HASH, hash), run(PIPELINE, pipeline)]
  const surroundings = { cpu: 'a CPU', cores: 1, node: '20', openssl: '3', loadAverage: 0, peers: {} }
  return reportText({ surroundings, repeat: 1, milliseconds: 1, rows, aims: aimsOf(rows) })
}

test('an aim that is missed is called so', () => {
  const met = textOf(figuresOf(500, 72.4), figuresOf(300, 72), figuresOf(1e9 / 150_000, 1024))
  assert.equal(met.match(/^aim: .*: met, /gm)?.length, 3)
  assert.match(met, /^proof check +powgate .*\nproof check +a package .* a remark$/m)
  const missed = textOf(figuresOf(501, 88), figuresOf(300, 72), figuresOf(6667, 1024))
  assert.match(missed, /^aim: proof check in at most 500 ns: NOT met, 501 ns$/m)
  assert.match(missed, /beyond the 72 bytes of one node:crypto hash call: NOT met, 16 bytes$/m)
  assert.match(missed, /^aim: whole .* NOT met, 149,993\/s, 1024 bytes$/m)
  const wasteful = textOf(figuresOf(500, 72), figuresOf(300, 72), figuresOf(1000, 1025))
  assert.match(wasteful, /^aim: whole .* NOT met, 1,000,000\/s, 1025 bytes$/m)
})

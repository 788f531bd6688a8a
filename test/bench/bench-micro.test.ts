import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { type Case, plain, type SyncWork, waysOf } from '../../bench/micro/case.ts'
import { CASES, ONE_SHOT_HASH, PROOF } from '../../bench/micro/cases.ts'
import type { Figures } from '../../bench/micro/child.ts'
import { visits } from '../../bench/micro/inputs.ts'
import { checkedPass, garbageOf, timingOf } from '../../bench/micro/measuring.ts'
import * as naive from '../../bench/micro/naive.ts'
import { measureAll } from '../../bench/micro/processes.ts'
import { aimsOf, type MicroReport, rowOf } from '../../bench/micro/report.ts'
import { PIPELINE } from '../../bench/micro/requests.ts'
import { installPeers } from '../../bench/peers.ts'
import { checkProof } from '../../src/domain/pow.ts'
import { temporaryDir } from '../harness/temporary.ts'
import { runBench } from './run-bench.ts'

const DIST = new URL('../../bench/dist', import.meta.url).pathname
const folder = temporaryDir('bench')

test('every way to do every step gives right results, pass after pass', async () => {
  installPeers(() => {})
  assert.equal(new Set(CASES.map(({ name }) => name)).size, CASES.length)
  for (const one of CASES) {
    const ways = waysOf(one, true)
    assert.equal(new Set(ways.map(({ label }) => label)).size, ways.length, one.name)
    for (const { label, prepare } of ways) {
      const work = await prepare()
      assert.ok(work.count >= 100, `${one.name} (${label}) has ${work.count} inputs`)
      await checkedPass(work)
      const { ns, cpuNs, operations } = await timingOf(work, 1)
      for (const figure of [ns, cpuNs]) {
        assert.ok(figure > 0 && Number.isFinite(figure), `${one.name} (${label})`)
      }
      assert.ok(operations >= 3 * work.count && operations % work.count === 0)
    }
  }
})

test('a short run, as JSON and as a page', async () => {
  const page = join(folder, 'report.html')
  const args = ['--milliseconds', '5', '--repeat', '1', '--json', '--report', page]
  const { stdout, stderr } = await runBench('micro', ...args, '--filter', 'redemption', '--filter', 'PROOF')
  const { rows, aims, surroundings } = JSON.parse(stdout) as MicroReport
  assert.deepEqual(
    rows.map(({ name, ways }) => [name, ...ways.map(({ label }) => label)]),
    [
      ['whole redemption, answered', 'powgate', 'plain', '@cap.js/server'],
      [PROOF, 'powgate', 'plain'],
      [ONE_SHOT_HASH, 'powgate'],
    ],
  )
  for (const { name, ways } of rows) {
    for (const [index, way] of ways.entries()) {
      for (const figure of ['ns', 'cpuNs', 'perSecond', 'garbageBytes'] as const) {
        const { min, median, max } = way[figure]
        assert.ok(0 < min && min <= median && median <= max && Number.isFinite(max), `${name}: ${figure}`)
      }
      for (const times of [way.timesFaster, way.timesLessCpu])
        assert.ok(index === 0 ? times === undefined : times!.min > 0, name)
    }
  }
  assert.equal(aims.length, 2)
  assert.deepEqual(Object.keys(surroundings.packages), ['@cap.js/server', 'altcha-lib'])
  assert.match(stderr, /^round 1 of 1: whole redemption, answered\n/)
  const html = readFileSync(page, 'utf8')
  for (const text of ['@cap.js/server', PROOF, 'aim: ']) assert.ok(html.includes(text), text)
  const compiled = readdirSync(DIST).filter(name => name.startsWith('micro-'))
  assert.deepEqual(compiled, [], 'what was compiled is removed')
})

test('a short run without packages, as a table', async () => {
  const args = ['--milliseconds', '2', '--repeat', '1', '--no-peers', '--filter', 'whole challenge']
  const { stdout } = await runBench('micro', ...args)
  assert.match(stdout, /^Steps\n\nstep .*\n-.*\nwhole challenge, answered {2}powgate .*\n.* plain .*\n\n/)
  assert.doesNotMatch(stdout, /altcha|cap\.js|aim:/)
})

function syncWork(count: number, step: SyncWork['step']): SyncWork {
  return { kind: 'sync', count, step }
}

test('a step with a wrong result has no figures', async () => {
  const work = syncWork(100, index => index !== 7)
  await assert.rejects(checkedPass(work), /^Error: 1 of 100 results are wrong$/)
  await assert.rejects(timingOf(work, 1), /1 of 100 results are wrong/)
  const late = { kind: 'async', count: 100, step: async (index: number) => index <= 97 } as const
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
  assert.ok((await about(index => index >= 0)) < 1)
  const pair = await about(index => {
    held[index & 3] = { index, more: held } // an object's three words, and two fields
    return true
  })
  assert.ok(Math.abs(pair - 40) < 1, `an object of 40 bytes is found to be ${pair}`)
  const buffer = await about(index => {
    held[index & 3] = new ArrayBuffer(1000)
    return true
  })
  assert.ok(buffer >= 1000 && buffer < 1400, `an array buffer of 1000 bytes is found to be ${buffer}`)
})

test('the plain ways judge as the service does', () => {
  for (const { nonce, counter } of visits().slice(0, 50)) {
    for (let bits = 0; bits <= 12; bits++) {
      assert.equal(naive.isProof(nonce, counter, bits), checkProof(nonce, counter, bits), `${bits} bits`)
    }
  }
  const challenge = naive.challengeFor('203.0.113.7')
  assert.ok(naive.isChallenge(challenge, '203.0.113.7'))
  assert.ok(!naive.isChallenge(challenge, '203.0.113.8'))
  assert.ok(!naive.isChallenge({ ...challenge, difficulty: 0 }, '203.0.113.7'))
  const token = naive.tokenFor('a', '::1', 0.9)
  assert.equal(naive.claimsIn(token)!.score, 0.9)
  assert.equal(naive.claimsIn(`${token.slice(0, -3)}AAA`), undefined)
  assert.deepEqual(naive.windowWith([0, 1, 60_000], 60_000, 3), [1, 60_000, 60_000])
  assert.equal(naive.windowWith([1, 60_000], 60_000, 2), undefined)
})

const idle = () => syncWork(100, () => true)

function figuresOf(ns: number, garbageBytes: number): Figures {
  return { ns, cpuNs: 2 * ns, operations: 100, garbageBytes, othersBusy: 0 }
}

const others = [
  ...plain('', idle),
  { label: 'a package', note: 'a remark', isPackage: true, prepare: idle } as const,
]

test('ways take turns, and ratios are of the same round', async () => {
  const cases: Case[] = [
    { name: 'a', prepare: idle, others },
    { name: 'b', prepare: idle },
  ]
  const calls: string[] = []
  const measure = async (name: string, label: string) => {
    calls.push(name + label)
    const round = calls.filter(call => call === name + label).length
    return figuresOf(label === 'powgate' ? 100 * round : 1000 * round ** 2, 8)
  }
  const sizes = { repeat: 3, milliseconds: 1, hasPackages: true }
  const [a, b] = (await measureAll(cases, sizes, measure, () => {})).map(rowOf)
  assert.deepEqual(calls.slice(0, 5), ['apowgate', 'aplain', 'aa package', 'bpowgate', 'apowgate'])
  const [ours, naively, byPackage] = a!.ways
  assert.deepEqual(naively!.timesFaster, { median: 20, min: 10, max: 30 })
  assert.deepEqual(byPackage!.ns, { median: 4000, min: 1000, max: 9000 })
  assert.equal(ours!.perSecond.median, 5e6)
  assert.equal(ours!.operations, 300)
  assert.equal(b!.ways.length, 1)
})

test('an aim that is missed is called so', () => {
  const areMet = (...all: readonly Figures[]) =>
    aimsOf(
      [PROOF, ONE_SHOT_HASH, PIPELINE].map((name, index) =>
        rowOf({ case: { name, prepare: idle }, figures: new Map([['powgate', [all[index]!]]]) }),
      ),
    ).map(({ isMet }) => isMet)
  const [hash, fast] = [figuresOf(300, 72), figuresOf(1e9 / 150_000, 1024)]
  assert.deepEqual(areMet(figuresOf(500, 72.4), hash, fast), [true, true, true])
  assert.deepEqual(areMet(figuresOf(501, 88), hash, figuresOf(6667, 1024)), [false, false, false])
  assert.deepEqual(areMet(figuresOf(500, 72), hash, figuresOf(1000, 1025)), [true, true, false])
})

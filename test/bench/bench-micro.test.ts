import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type { Figures } from '../../bench/micro/child.ts'
import { garbageOf, timingsOf } from '../../bench/micro/measuring.ts'
import { aimsOf, type MicroReport, rowsOf } from '../../bench/micro/report.ts'
import { HASH, type Load, PARTS_OF_WHOLE, PLAIN, PROOF, STEPS, WHOLE } from '../../bench/micro/steps.ts'
import { over, requireRight } from '../../bench/micro/work.ts'
import { isAlive } from '../harness/processes.ts'
import { runBench } from './run-bench.ts'

const ROOT = new URL('../..', import.meta.url).pathname
const DIST = `${ROOT}bench/dist`

test('every step gives right results, pass after pass', async () => {
  const load: Load = path => import(`../../src/${path}.ts`)
  assert.equal(new Set(STEPS.map(({ name }) => name)).size, STEPS.length)
  for (const { name, prepare } of STEPS) {
    const work = await prepare(load)
    assert.ok(work.count >= 100, `${name} has ${work.count} inputs`)
    requireRight(work, name)
    const [{ ns, cpuNs, operations }] = timingsOf([work], 1) as [ReturnType<typeof timingsOf>[number]]
    for (const figure of [ns, cpuNs]) assert.ok(figure > 0 && Number.isFinite(figure), name)
    assert.ok(operations > 0 && operations % work.count === 0)
  }
})

test('a short run is JSON alone, has the steps that were asked for, and leaves nothing behind', async () => {
  const args = ['--milliseconds', '5', '--repeat', '2', '--json', '--filter', 'token', '--filter', 'PROOF']
  const { stdout, stderr } = await runBench('micro', ...args)
  const { rows, aims } = JSON.parse(stdout) as MicroReport
  const named = STEPS.map(({ name }) => name).filter(name => /token|proof/.test(name))
  assert.deepEqual(
    rows.map(({ name }) => name),
    named,
  )
  for (const { name, rounds, ...row } of rows) {
    assert.equal(rounds, 2)
    for (const figure of ['ns', 'cpuNs', 'perSecond', 'garbageBytes'] as const) {
      const { min, median, max } = row[figure]!
      assert.ok(0 < min && min <= median && median <= max && Number.isFinite(max), `${name}: ${figure}`)
    }
  }
  assert.ok(aims.length > 2)
  assert.match(stderr, /^round 1 of 2\nround 2 of 2\n$/)
  assert.deepEqual(
    readdirSync(DIST).filter(name => name.startsWith('steps-') && !isAlive(Number(name.split('-')[1]))),
    [],
    'what was compiled is removed',
  )
})

test('an interrupted run tells what it has, as JSON alone, and ends with 1', async () => {
  const command = '--import tsx bench/cli.ts micro --milliseconds 5 --filter score --json'.split(' ')
  const child = spawn(process.execPath, [...command, '--repeat', '100'], {
    cwd: ROOT,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const printed = text(child.stdout)
  child.stderr.on('data', (line: Buffer) => {
    if (line.toString().includes('round 2')) child.kill('SIGINT')
  })
  const [code] = await once(child, 'exit')
  assert.equal(code, 1)
  const { rows } = JSON.parse(await printed) as MicroReport
  assert.ok(rows[0]!.rounds >= 2 && rows[0]!.rounds < 100)
})

test('a step with a wrong result has no figures', () => {
  const work = over(
    Array.from({ length: 100 }, (_, index) => index),
    index => index !== 7,
  )
  assert.throws(() => requireRight(work, 'a step'), /^Error: a step: 1 of 100 results are wrong$/)
  assert.throws(() => timingsOf([work], 1), /results are wrong/)
})

test('garbage is counted to the byte, on the heap and in buffers outside of it', async () => {
  setFlagsFromString('--expose-gc')
  globalThis.gc = runInNewContext('gc') as NodeJS.GCFunction
  const held: unknown[] = new Array(4)
  const inputs = Array.from({ length: 500 }, (_, index) => index)
  const about = async (step: (index: number) => boolean) => {
    const work = over(inputs, step)
    for (let pass = 0; pass < 2000; pass++) requireRight(work, 'a step')
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

function rounds(figures: Readonly<Record<string, readonly [cpuNs: number, garbageBytes: number]>>) {
  return new Map(
    Object.entries(figures).map(([name, [cpuNs, garbageBytes]]): [string, Figures[]] => {
      return [name, [{ ns: cpuNs, cpuNs, garbageBytes, operations: 100, othersBusy: 0 }]]
    }),
  )
}

test('an aim that is missed is called so, and a whole that is not the sum of its steps is a fault', () => {
  const parts = Object.fromEntries(PARTS_OF_WHOLE.map(name => [name, [1000, 100]] as const))
  const missed = (proof: number, whole: number) => {
    const wholes = { [PLAIN]: [20_000, 9], [WHOLE]: [whole, 1] } as const
    const all = { ...parts, [PROOF]: [proof, 72], [HASH]: [1000, 72], ...wholes } as const
    return aimsOf(rounds(all)).flatMap(({ about, isMet }) => (isMet ? [] : [about]))
  }
  assert.deepEqual(missed(1200, 5200), [])
  assert.match(missed(2000, 6000).join(), /times node's own hash$/)
  assert.match(missed(1200, 11_000).join(), /sum of its steps/)
  const [row] = rowsOf(rounds({ score: [100, 8] }))
  assert.equal(row!.perSecond!.median, 1e7)
})

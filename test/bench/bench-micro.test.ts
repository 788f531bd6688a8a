import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { test } from 'node:test'
import type { MicroReport } from '../../bench/micro/report.ts'
import { STEPS } from '../../bench/micro/steps.ts'
import { isAlive } from '../harness/processes.ts'
import { runBench } from './run-bench.ts'

const DIST = new URL('../../bench/dist', import.meta.url).pathname

test('a short run is JSON alone, has every step, and leaves nothing behind', async () => {
  const args = ['--milliseconds', '5', '--repeat', '2', '--json']
  const { stdout, stderr } = await runBench('micro', ...args)
  const { rows, aims } = JSON.parse(stdout) as MicroReport
  assert.deepEqual(
    rows.map(({ name }) => name),
    STEPS.map(({ name }) => name),
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

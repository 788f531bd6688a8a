import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CONTENDER_NAMES } from '../../bench/solver/contenders.ts'
import type { SolverFigures } from '../../bench/solver/report.ts'
import type { SlowRow } from '../../bench/solver/slow.ts'
import { runBench } from './run-bench.ts'

test('a short run measures every solver, and all find what node:crypto finds', async () => {
  const { stdout, stderr } = await runBench('solver', '--quick', '--json')
  const { surroundings, rates, solves, aims } = JSON.parse(stdout) as SolverFigures
  assert.match(stderr, /all solvers find the right counters\n/)
  const threads = [...new Set(rates.map(row => row.threads))]
  assert.equal(threads[0], 1)
  assert.deepEqual(
    rates.map(row => [row.threads, row.contender]),
    threads.flatMap(count => CONTENDER_NAMES.map(name => [count, name])),
  )
  for (const { label, hashesPerSecond, timesCap } of rates) {
    for (const { min, median, max } of [hashesPerSecond!, timesCap!]) {
      assert.ok(0 < min && min <= median && median <= max && Number.isFinite(max), label)
    }
  }
  const solved = solves.map(
    ({ puzzle, difficulty, nonces }) => `${nonces} of ${difficulty} bits of ${puzzle}`,
  )
  const expected = ['1 bits of sha256', '18 bits of sha256', '1 bits of hashwx', '16 bits of hashwx']
  assert.deepEqual(
    solved,
    expected.map(row => `3 of ${row}`),
  )
  for (const { difficulty, searchMs, expectedMs, luck, totalMs } of solves) {
    const figures = [searchMs, expectedMs, totalMs].flatMap(group => Object.values(group))
    assert.ok(
      [...figures, luck].every(figure => figure > 0 && Number.isFinite(figure)),
      `${difficulty} bits`,
    )
    assert.ok(totalMs.median >= searchMs.median)
  }
  assert.equal(aims.length, 2)
  assert.match(surroundings.browser, /^Chromium \d+\./)
})

test('the GPU beside them: the time to its first answer, and its rate', async () => {
  const args = '--quick --filter hash-wasm --gpu software --json'.split(' ')
  const { stdout } = await runBench('solver', ...args)
  const { gpu } = JSON.parse(stdout) as SolverFigures
  assert.equal(gpu!.kind, 'software')
  assert.ok(gpu!.startMs!.median > 0 && gpu!.hashesPerSecond!.median > 0)
})

test('with a quarter of a core: a token, and the solver’s time within the whole', async () => {
  const slow = runBench('solver', '--slow', '--quick', '--json')
  if (process.getuid!() !== 0) return assert.rejects(slow, /--slow needs root/)
  const [row, ...more] = JSON.parse((await slow).stdout) as SlowRow[]
  assert.deepEqual([row!.cores, row!.puzzle, row!.difficulty, more], [0.25, 'hashwx', 16, []])
  assert.equal(row!.runs.length, 1)
  const { tokenMs, solveTimeMs, tries } = row!.runs[0]!
  assert.ok(solveTimeMs < tokenMs && tries > 0)
})

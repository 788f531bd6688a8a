import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CONTENDER_NAMES } from '../../bench/solver/contenders.ts'
import { figuresOf, quantile, reportOf, type SolverFigures } from '../../bench/solver/report.ts'
import { checkAll, firstProof } from '../../bench/solver/runs.ts'
import type { SlowRow } from '../../bench/solver/slow.ts'
import { checkProof } from '../../src/domain/pow.ts'
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
  await assert.rejects(runBench('solver', '--gpu', 'abacus'), /--gpu: expected one of card, software/)
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

test('some solvers only, by a part of their names', async () => {
  const { stdout } = await runBench('solver', '--quick', '--filter', 'hash-wasm', '--filter', 'CAP.JS')
  assert.match(stdout, /^Hashes\n\nsolver .*\n-.*\n@cap\.js\/wasm +1 .*\nhash-wasm +1 /)
  assert.doesNotMatch(stdout, /powgate|aim:|bits/)
})

test('a solver that finds another counter than the first is told of', async () => {
  const finding = (find: (nonce: string) => number) => ({
    evaluate: async (expression: string) => find(/[0-9a-f]{32}/.exec(expression)![0]),
  })
  const right = (nonce: string) => firstProof('cap', nonce, 12)
  await checkAll(finding(right), ['cap'])
  const next = (nonce: string) => {
    for (let counter = right(nonce) + 1; ; counter++) if (checkProof(nonce, counter, 12)) return counter
  }
  await assert.rejects(
    checkAll(finding(next), ['cap']),
    /^Error: @cap\.js\/wasm: the counter of \w+ is \d+, but/,
  )
})

test('ratios are of the same round, and an aim that is missed is called so', () => {
  const sizes = {
    repeat: 3,
    warmUpMs: 1,
    measureMs: 1,
    retryMs: 0,
    difficulties: { sha256: [], hashwx: [] },
    noncesPerDifficulty: 0,
  }
  const samples = (values: readonly number[], othersBusy?: number) =>
    values.map(value => ({ value: value * 1e6, othersBusy }))
  const figures = figuresOf(
    { browser: 'Chromium 1', loadAverage: 0, sizes },
    [
      { contender: 'simd', threads: 1, samples: samples([12, 40, 3]) },
      { contender: 'scalar', threads: 1, samples: samples([4, 10, 1], 0.5) },
      { contender: 'cap', threads: 1, samples: samples([4, 10, 1]) },
    ],
    [],
  )
  assert.deepEqual(figures.rates[0]!.timesCap, { median: 3, min: 3, max: 4 })
  const met = figures.aims.map(aim => aim.isMet)
  assert.deepEqual(met, [false, true])
  assert.match(reportOf(figures), /others used 50% of a core/)
})

test('a quantile is a value that enough others do not exceed', () => {
  const values = Array.from({ length: 20 }, (_, index) => 20 - index)
  assert.equal(quantile(values, 0.95), 19)
  assert.equal(quantile(values, 0.951), 20)
  assert.equal(quantile(values, 0.5), 10)
  assert.equal(quantile([7], 0), 7)
})

/** All solvers of a puzzle find the same counter: the first one that the server's check accepts. The last test is of their WorkerPool. */

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import fc from 'fast-check'
import { checkProof } from '../../src/domain/pow.ts'
import type { PuzzleName } from '../../src/protocol/proof.ts'
import { BLOCK_SIZE, COUNTER_MAX, COUNTERS_PER_FUNCTION, FIRST_COUNTER } from '../../src/protocol/proof.ts'
import type { Solver } from '../../src/widget/solver/block.ts'
import { hashwxScriptSolver, hashwxSolver } from '../../src/widget/solver/hashwx-solver.ts'
import { scriptSolver, wasmSolver } from '../../src/widget/solver/solvers.ts'
import { nonces, seeded } from '../harness/arbitraries.ts'

const DIST = new URL('../../dist/', import.meta.url)
const SOLVERS: Readonly<Record<string, Solver>> = {
  simd: wasmSolver(readFileSync(new URL('simd.wasm', DIST))),
  scalar: wasmSolver(readFileSync(new URL('scalar.wasm', DIST))),
  script: scriptSolver(),
}

/** What the definition says, with the server's check, which domain/proof.test.ts holds to the golden vectors. */
function firstProof(nonce: string, difficulty: number, start: number, count: number, puzzle?: PuzzleName) {
  for (let counter = start; counter < Math.min(start + count, COUNTER_MAX + 1); counter++)
    if (checkProof(nonce, counter, difficulty, puzzle)) return counter
  return -1
}

for (const [name, solver] of Object.entries(SOLVERS)) {
  test(`${name}: every difficulty from 0 to 20 bits`, () => {
    for (let difficulty = 0; difficulty <= 20; difficulty++) {
      const arbitrary = fc.tuple(nonces, fc.integer({ min: 0, max: 7_000_000_000 }))
      fc.assert(
        fc.property(arbitrary, ([nonce, offset]) => {
          const start = FIRST_COUNTER + offset
          const found = solver(nonce, difficulty)(start, 2 ** 26) // as good as certain: 20 bits take 2 ** 20 on average
          assert.ok(checkProof(nonce, found, difficulty), `${nonce} ${found} ${difficulty}`)
          if (difficulty <= 12) assert.equal(found, firstProof(nonce, difficulty, start, 2 ** 20))
          else if (name !== 'script')
            assert.equal(found, SOLVERS.script!(nonce, difficulty)(start, found - start + 1))
        }),
        seeded(difficulty <= 12 ? 12 : 1),
      )
    }
  })

  // With SIMD four counters of a block are hashed at a time, each in a lane. The ranges begin and end in any of them.
  test(`${name}: across every change of digit count, block and lane, up to 2^53 - 1`, () => {
    const lastBlock = COUNTER_MAX - (COUNTER_MAX % BLOCK_SIZE)
    const lastRoundNumber = 9e15
    const edges = [0, COUNTER_MAX - 12, FIRST_COUNTER + BLOCK_SIZE, lastBlock, lastRoundNumber]
    for (let power = 1; power <= 15; power++) edges.push(10 ** power)
    const starts = fc.constantFrom(...edges).chain(edge =>
      fc.record({
        start: fc.integer({ min: Math.max(0, edge - 9), max: edge + 9 }),
        count: fc.integer({ min: 1, max: 40 }),
      }),
    )
    fc.assert(
      fc.property(nonces, starts, fc.integer({ min: 0, max: 8 }), (nonce, { start, count }, difficulty) => {
        const expected = firstProof(nonce, difficulty, start, count)
        assert.equal(solver(nonce, difficulty)(start, count), expected)
      }),
      seeded(2000),
    )
  })

  test(`${name}: nothing in a range gives -1, and no difficulty beyond 32 bits is taken for a smaller one`, () => {
    const nonce = 'f'.repeat(32)
    assert.equal(solver(nonce, 32)(FIRST_COUNTER, 50_000), -1)
    assert.equal(solver(nonce, 0)(FIRST_COUNTER, 0), -1)
    for (const difficulty of [33, -1, Number.NaN])
      assert.throws(() => solver(nonce, difficulty)(FIRST_COUNTER, 1), RangeError)
  })

  test(`${name}: two searches at once do not disturb each other`, () => {
    const one = solver('a'.repeat(32), 9)
    const two = solver('b'.repeat(32), 11)
    // 997 is prime, so searches begin and end anywhere in lanes.
    for (let start = FIRST_COUNTER; start < FIRST_COUNTER + 8 * 997; start += 997) {
      assert.equal(one(start, 997), firstProof('a'.repeat(32), 9, start, 997))
      assert.equal(two(start, 997), firstProof('b'.repeat(32), 11, start, 997))
    }
  })
}

const HASHWX_SOLVERS: Readonly<Record<string, Solver>> = {
  hashwx: hashwxSolver(readFileSync(new URL('hashwx.wasm', DIST))),
  'hashwx, plain JavaScript': hashwxScriptSolver(await import(new URL('hashwx-script.js', DIST).href)),
}

for (const [name, solver] of Object.entries(HASHWX_SOLVERS)) {
  const first = (nonce: string, difficulty: number, start: number, count: number) =>
    firstProof(nonce, difficulty, start, count, 'hashwx')

  // WebAssembly computes batches of 256 counters at most (hashwx-machine.ts), so most ranges cross the end of one.
  test(`${name}: across the ends of functions and of batches, up to 2^53 - 1`, () => {
    const firstFunctionEnd = Math.ceil(FIRST_COUNTER / COUNTERS_PER_FUNCTION) * COUNTERS_PER_FUNCTION
    const edges = [0, COUNTERS_PER_FUNCTION, 2 ** 32, FIRST_COUNTER, firstFunctionEnd, COUNTER_MAX - 300]
    const starts = fc.constantFrom(...edges).chain(edge =>
      fc.record({
        start: fc.integer({ min: Math.max(0, edge - 300), max: edge + 300 }),
        count: fc.integer({ min: 0, max: 600 }),
      }),
    )
    fc.assert(
      fc.property(nonces, starts, fc.integer({ min: 0, max: 10 }), (nonce, { start, count }, difficulty) => {
        assert.equal(solver(nonce, difficulty)(start, count), first(nonce, difficulty, start, count))
      }),
      seeded(60),
    )
  })

  test(`${name}: a search that goes back, and two at once`, () => {
    const one = solver('a'.repeat(32), 7)
    const two = solver('b'.repeat(32), 8)
    const end = COUNTERS_PER_FUNCTION // searches across it, from it on, across the next one, and back
    for (const start of [end - 97, end, 2 * end - 50, 10, FIRST_COUNTER]) {
      assert.equal(one(start, 197), first('a'.repeat(32), 7, start, 197))
      assert.equal(two(start, 197), first('b'.repeat(32), 8, start, 197))
    }
  })
}

/** It is imported by its address, since tests are compiled without the types of browsers. */
const { WorkerPool } = await import(new URL('../../src/widget/solver/pool.ts', import.meta.url).href)

test('a sole worker that ends before the puzzle comes: another mode is tried, and nobody waits', async () => {
  const { port1, port2 } = new MessageChannel() // the page's end and the worker's, as with a worker in the frame
  const worker = Object.assign(port1, { terminate: () => port1.close() })
  const pool = new WorkerPool(() => worker, Promise.resolve(), { puzzle: 'sha256', script: undefined })
  port2.postMessage({ kind: 'ready' })
  await pool.ready
  // Two errors of one worker end one worker.
  for (const message of ['gone', 'an error of its next order']) port2.postMessage({ kind: 'failed', message })
  await sleep(50)
  const job = { algorithm: 'sha256', nonce: '0'.repeat(32), difficulty: 16, signals: 'none' }
  const threadsMax = 1
  const noGpu = new Promise<number>(() => {})
  const solved = pool.solve(job, threadsMax, () => {}, noGpu)
  await assert.rejects(solved, { name: 'ModeBlockedError' }) // which modes.ts answers by another mode
})

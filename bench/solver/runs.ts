/** The measurements, one after the other, in one page of one browser. */

import { createHash } from 'node:crypto'
import type { Browser } from 'playwright-core'
import { checkProof } from '../../src/domain/pow.ts'
import { PUZZLES, type PuzzleName } from '../../src/protocol/proof.ts'
import { tell } from '../../test/harness/command-line.ts'
import { leastDisturbed, type Measured, measured } from '../disturbance.ts'
import type { BenchPage, ContenderName, GpuRun, PoolResult } from './contenders.ts'
import { CONTENDERS, puzzleOf } from './contenders.ts'

export interface Sizes {
  /** How often each rate is measured. */
  readonly repeat: number
  readonly warmUpMs: number
  readonly measureMs: number
  /** What is disturbed is measured again until the rates have taken so long. */
  readonly retryMs: number
  /** Bits of challenges; one bit shows the time to the first hash. */
  readonly difficulties: Readonly<Record<PuzzleName, readonly number[]>>
  readonly noncesPerDifficulty: number
}

export interface Rate {
  readonly contender: ContenderName
  readonly threads: number
  /** Hashes per second, one for each repetition. */
  readonly samples: Measured<number>[]
}

export interface Solves {
  readonly puzzle: PuzzleName
  readonly difficulty: number
  readonly results: readonly Measured<PoolResult>[]
}

/** A page of Playwright, or a browser that is driven otherwise. */
export interface Evaluating {
  evaluate(expression: string): Promise<unknown>
}

/** Solving ends early after this, with fewer nonces, but never with none. */
const SOLVES_MS_MAX = 110_000
const CHECK_BITS = 12
const CHECK_NONCES = 3

/** Calls a function of the page's bench (browser/page.ts). */
export function call<Name extends keyof BenchPage>(
  page: Evaluating,
  name: Name,
  ...args: Parameters<BenchPage[Name]>
): ReturnType<BenchPage[Name]> {
  return page.evaluate(`bench.${name}(...${JSON.stringify(args)})`) as ReturnType<BenchPage[Name]>
}

/** Throws Error naming the contender that finds another counter than node:crypto. */
export async function checkAll(page: Evaluating, contenders: readonly ContenderName[]): Promise<void> {
  for (const contender of contenders) {
    for (let index = 0; index < CHECK_NONCES; index++) {
      const nonce = nonceOf(`check ${index}`)
      const found = await call(page, 'find', contender, nonce, CHECK_BITS)
      const expected = firstProof(contender, nonce, CHECK_BITS)
      if (found !== expected) {
        const { label } = CONTENDERS[contender]
        throw new Error(`${label}: the counter of ${nonce} is ${expected}, but it finds ${found}`)
      }
    }
  }
}

/** Measures in turn, A B C A B C, so that whatever else the machine does befalls all alike. */
export async function measureRates(
  page: Evaluating,
  contenders: readonly ContenderName[],
  { repeat, warmUpMs, measureMs: ms, retryMs }: Sizes,
  threadCounts: readonly number[],
): Promise<Rate[]> {
  const giveUpAtMs = performance.now() + retryMs
  const rates = threadCounts.flatMap(threads =>
    contenders.map((contender): Rate => ({ contender, threads, samples: [] })),
  )
  for (let round = 0; round < repeat; round++) {
    for (const { contender, threads, samples } of rates) {
      const run = { nonce: nonceOf(`rate ${round}`), threads, warmUpMs, ms }
      samples.push(await leastDisturbed(() => call(page, 'rate', contender, run), giveUpAtMs))
    }
    tell(`rates: round ${round + 1} of ${repeat}`)
  }
  return rates
}

/** Solves both puzzles. Throws Error if a counter is no proof. */
export async function measureSolves(
  page: Evaluating,
  { difficulties, noncesPerDifficulty }: Sizes,
  threads: number,
): Promise<Solves[]> {
  const all: Solves[] = []
  const rows = PUZZLES.flatMap(puzzle => difficulties[puzzle].map(difficulty => ({ puzzle, difficulty })))
  const endMs = performance.now() + SOLVES_MS_MAX
  for (const { puzzle, difficulty } of rows) {
    const results: Measured<PoolResult>[] = []
    while (results.length < noncesPerDifficulty && (results.length === 0 || performance.now() < endMs)) {
      const nonce = nonceOf(`solve ${results.length} at ${difficulty} bits`)
      const task = { nonce, difficulty, algorithm: puzzle }
      const result = await measured(() => call(page, 'solve', task, threads))
      const { counter } = result.value
      if (!checkProof(nonce, counter, difficulty, puzzle)) {
        throw new Error(`the pool's ${counter} is no proof of ${difficulty} bits for ${nonce}`)
      }
      results.push(result)
    }
    all.push({ puzzle, difficulty, results })
    tell(`solving: ${results.length} nonces at ${difficulty} bits of ${puzzle}`)
  }
  return all
}

/** Each in a new page, so that WebGPU starts anew. */
export async function measureGpu(browser: Browser, url: string, sizes: Sizes): Promise<GpuRun[]> {
  const runs: GpuRun[] = []
  while (runs.length < sizes.repeat) {
    const page = await browser.newPage()
    await page.goto(url)
    await page.waitForFunction(() => 'bench' in globalThis)
    runs.push(await call(page, 'gpu', nonceOf(`gpu ${runs.length}`), sizes.measureMs))
    await page.close()
  }
  return runs
}

/** The same in every run, so that runs are comparable. */
function nonceOf(purpose: string): string {
  return createHash('sha256').update(`bench:solver ${purpose}`).digest('hex').slice(0, 32)
}

/** What a contender must find: hashes per second count only if none is left out. */
function firstProof(contender: ContenderName, nonce: string, bits: number): number {
  for (let counter: number = CONTENDERS[contender].firstCounter; ; counter++) {
    if (checkProof(nonce, counter, bits, puzzleOf(contender))) return counter
  }
}

/** The measured solvers, and what the bench, its page and the page's workers tell each other. */

import { FIRST_COUNTER, type PuzzleName } from '../../src/protocol/proof.ts'

export const CONTENDERS = {
  simd: { label: 'powgate, WASM SIMD', firstCounter: FIRST_COUNTER },
  scalar: { label: 'powgate, WASM', firstCounter: FIRST_COUNTER },
  script: { label: 'powgate, JavaScript', firstCounter: FIRST_COUNTER },
  hashwx: { label: 'powgate, HashWX, WASM', firstCounter: FIRST_COUNTER },
  hashwxScript: { label: 'powgate, HashWX, JavaScript', firstCounter: FIRST_COUNTER },
  cap: { label: '@cap.js/wasm', firstCounter: 0 },
} as const

export type ContenderName = keyof typeof CONTENDERS

export const CONTENDER_NAMES = Object.keys(CONTENDERS) as ContenderName[]

export function puzzleOf(contender: ContenderName): PuzzleName {
  return contender.startsWith('hashwx') ? 'hashwx' : 'sha256'
}

/** What a worker is asked to do. */
export type Order =
  | { readonly kind: 'open'; readonly contender: ContenderName; readonly nonce: string }
  /** Hash for so long; answered by a RunResult. The page sends it twice, the first as a warm-up. */
  | { readonly kind: 'run'; readonly ms: number }
  /** Answer the contender's first counter that gives the nonce so many zero bits: a multiple of four, since Cap counts digits. */
  | { readonly kind: 'find'; readonly bits: number }

export interface RunResult {
  readonly hashes: number
  readonly ms: number
}

/** One puzzle, solved by the widget's own workers. */
export interface PoolResult {
  readonly counter: number
  /** Time from the puzzle to its counter, with workers that had started before. */
  readonly searchMs: number
}

/** A search of the GPU alone, without the widget's threads beside it. */
export interface GpuRun {
  /** Time from the first use of WebGPU on the page until the answer of the first dispatch. */
  readonly startMs: number
  readonly hashesPerSecond: number
}

/** What the page offers to the bench, as `globalThis.bench`. */
export interface BenchPage {
  /** How many threads the widget would take. */
  threadCount(): Promise<number>
  /** Hashes per second of so many threads together. */
  rate(
    contender: ContenderName,
    options: { nonce: string; threads: number; warmUpMs: number; ms: number },
  ): Promise<number>
  find(contender: ContenderName, nonce: string, bits: number): Promise<number>
  solve(
    task: { nonce: string; difficulty: number; algorithm: PuzzleName },
    threads: number,
  ): Promise<PoolResult>
  gpu(nonce: string, ms: number): Promise<GpuRun>
}

/** The solvers: WebAssembly with SIMD or without (../build/kernel.ts scans one block a call), and plain JavaScript. */

import {
  Block,
  type BlockScan,
  blockSolver,
  isConstant,
  lastFourDigits,
  MEMORY,
  type Solver,
  VARYING_WORD,
} from './block.ts'
import type { SolverKind } from './job.ts'
import { INITIAL_STATE, ROUND_CONSTANTS } from './sha256.ts'

export function scriptSolver(): Solver {
  const block = new Block()
  const digits = lastFourDigits()
  return blockSolver(block, (from, to, mask) => {
    for (let index = from; index < to; index++) {
      if ((firstWord(block, digits[index]!) & mask) === 0) return index
    }
    return -1
  })
}

/** Schedule words that vary within a block. Those that do not stay 0, because `roundInputs` and `scheduleSums` have them already. */
const schedule = new Int32Array(64)

/**
 * The digest's first word. `Block` has done the rounds up to that of VARYING_WORD, without adding this word. This is the inner loop:
 * with calls and arrays it would be three times slower.
 */
function firstWord({ state, roundInputs, scheduleSums }: Block, varying: number): number {
  const W = schedule
  W[VARYING_WORD] = varying
  let a = (state[0]! + varying) | 0
  let b = state[1]!
  let c = state[2]!
  let d = state[3]!
  let e = (state[4]! + varying) | 0
  let f = state[5]!
  let g = state[6]!
  let h = state[7]!
  for (let t = VARYING_WORD + 1; t < 64; t++) {
    let input = roundInputs[t]!
    if (!isConstant[t]) {
      const x = W[t - 15]!
      const y = W[t - 2]!
      const s0 = ((x >>> 7) | (x << 25)) ^ ((x >>> 18) | (x << 14)) ^ (x >>> 3)
      const s1 = ((y >>> 17) | (y << 15)) ^ ((y >>> 19) | (y << 13)) ^ (y >>> 10)
      W[t] = (scheduleSums[t]! + s0 + W[t - 7]! + s1 + W[t - 16]!) | 0
      input = (input + W[t]!) | 0
    }
    const s1 = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7))
    const first = (h + s1 + (g ^ (e & (f ^ g))) + input) | 0
    const s0 = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10))
    const second = (s0 + ((a & b) | (c & (a | b)))) | 0
    h = g
    g = f
    f = e
    e = (d + first) | 0
    d = c
    c = b
    b = a
    a = (first + second) | 0
  }
  return (a + INITIAL_STATE[0]!) | 0
}

/**
 * @param bytes either kernel's module; compiled synchronously, which workers may do
 * @throws WebAssembly.CompileError
 */
export function wasmSolver(bytes: BufferSource): Solver {
  const { exports } = new WebAssembly.Instance(new WebAssembly.Module(bytes))
  const { memory, scan } = exports as unknown as { memory: WebAssembly.Memory; scan: BlockScan }
  const words = new Int32Array(memory.buffer)
  words.set(lastFourDigits(), MEMORY.digits / 4)
  words.set(ROUND_CONSTANTS, MEMORY.roundConstants / 4)
  return blockSolver(new Block(memory.buffer), scan)
}

export interface ChosenSolver {
  readonly solver: Solver
  readonly kind: SolverKind
}

export function chooseSolver(kernel: ArrayBuffer | undefined): ChosenSolver {
  try {
    if (kernel !== undefined) return { solver: wasmSolver(kernel), kind: 'wasm' }
  } catch {
    // The policy forbids compiling; plain JavaScript always works.
  }
  return { solver: scriptSolver(), kind: 'script' }
}

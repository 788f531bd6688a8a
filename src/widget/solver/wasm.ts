/** The WebAssembly solvers: the kernel (kernel/kernel.ts) computes the hashes, and this file passes it one block at a time. */

import { Block, difficultyMask, digitWords, searchBlocks } from './block.ts'
import type { Solver } from './search.ts'
import { ROUND_CONSTANTS } from './sha256.ts'

/** Layout of the kernel's memory, in bytes. */
export const MEMORY = {
  state: 0,
  roundInputs: 32,
  scheduleSums: 288,
  roundConstants: 544,
  digits: 1024,
} as const

/** Lanes of the SIMD kernel; the scalar one takes any number. */
const LANES = 4

interface KernelExports {
  readonly memory: WebAssembly.Memory
  /** Tries counters `from` to `to` - 1 of the block. Returns the first whose digest has all bits of `mask` clear, or -1. */
  readonly scan: (from: number, to: number, mask: number) => number
}

/**
 * @param bytes the module of either kernel; compiled synchronously, which workers may do
 * @throws WebAssembly.CompileError if the browser lacks an instruction, or its policy forbids compiling
 */
export function wasmSolver(bytes: BufferSource): Solver {
  const module = new WebAssembly.Module(bytes)
  return (nonce, difficulty) => {
    const { exports } = new WebAssembly.Instance(module)
    const { memory, scan } = exports as unknown as KernelExports
    const view = (at: number, length: number) => new Int32Array(memory.buffer, at, length)
    view(MEMORY.digits, 10_000).set(digitWords())
    view(MEMORY.roundConstants, 64).set(ROUND_CONSTANTS)
    const block = new Block()
    const mask = difficultyMask(difficulty)
    const enter = (start: number) => {
      block.set(nonce, start)
      view(MEMORY.state, 8).set(block.state)
      view(MEMORY.roundInputs, 64).set(block.roundInputs)
      view(MEMORY.scheduleSums, 64).set(block.scheduleSums)
      return (from: number, to: number) => scan(from, to, mask)
    }
    return searchBlocks(nonce, difficulty, enter, LANES)
  }
}

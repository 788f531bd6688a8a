/**
 * Solvers of HashWX, the second puzzle, which has a random function for every 65,536 counters (../../protocol/proof.ts): one emits
 * WebAssembly for each function, the other interprets the functions in plain JavaScript.
 */

import { BATCH, HashwxMachine, type MachineExports, type Run } from '../../protocol/hashwx-machine.ts'
import { COUNTER_MAX, COUNTERS_PER_FUNCTION, seedInput } from '../../protocol/proof.ts'
import type { Search, Solver } from './block.ts'
import { digestWords } from './sha256.ts'

/** Counters between two readings of the clock: 2 ms with WebAssembly, a second in an interpreter without a compiler. */
export const HASHWX_STRIDE = 2048

/**
 * @param bytes hashwx.wasm; it and each function are compiled synchronously, which workers may do
 * @throws WebAssembly.CompileError
 */
export function hashwxSolver(bytes: BufferSource): Solver {
  const { exports } = new WebAssembly.Instance(new WebAssembly.Module(bytes))
  const machine = new HashwxMachine(exports as unknown as MachineExports)
  return functionSolver(machine, BATCH, () => machine.link(new WebAssembly.Module(machine.emit())))
}

/** @param exports of hashwx-script.js, which is ../../protocol/hashwx/machine.ts as JavaScript */
export function hashwxScriptSolver(exports: MachineExports): Solver {
  return functionSolver(new HashwxMachine(exports), 1, () => exports.interpret)
}

/** The search that made the machine's function. On the page's own thread, searches of several elements share one machine. */
let latest: Search | undefined

/**
 * Makes a solver that makes one function after another, and searches the counters that each is for.
 *
 * @param batch the most counters that `prepare`'s result may compute in one call
 * @param prepare called after the machine has made a function
 */
function functionSolver(machine: HashwxMachine, batch: number, prepare: () => Run): Solver {
  return (nonce, difficulty) => {
    /** The first counter that the machine's function is not for; 0 if this search has to make one. */
    let functionEnd = 0
    let run: Run
    /** Makes the function of the counter, which need not be its first. */
    const makeFunction = (counter: number) => {
      const seed = new DataView(machine.seed.buffer, machine.seed.byteOffset) // writes big-endian words
      for (const [index, word] of digestWords(seedInput(nonce, counter)).entries())
        seed.setInt32(4 * index, word)
      machine.make()
      run = prepare()
      functionEnd = counter - (counter % COUNTERS_PER_FUNCTION) + COUNTERS_PER_FUNCTION
    }
    const search: Search = (start, count) => {
      const end = Math.min(start + count, COUNTER_MAX + 1)
      // The machine's function is another search's, or one of later counters.
      if (latest !== search || start < functionEnd - COUNTERS_PER_FUNCTION) functionEnd = 0
      latest = search
      for (let counter = start; counter < end; ) {
        if (counter >= functionEnd) makeFunction(counter)
        const length = Math.min(batch, end - counter, functionEnd - counter)
        const found = machine.search(run, counter, length, difficulty)
        if (found >= 0) return found
        counter += length
      }
      return -1
    }
    return search
  }
}

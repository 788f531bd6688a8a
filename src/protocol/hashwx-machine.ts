/**
 * Calls HashWX (hashwx/machine.ts says what it computes), which `npm run build:hashwx` compiles from hashwx/. A machine holds one
 * function and one batch of inputs: write `seed` and call `make`, then `isProof`; or `emit`, `link` and `search`, to try many.
 */

/** A global of the module, whose value is an offset in its memory. */
interface MemoryOffset {
  readonly value: number
}

/** hashwx/machine.ts describes these. */
export interface MachineExports {
  readonly memory: WebAssembly.Memory
  readonly seed: MemoryOffset
  readonly result: MemoryOffset
  readonly batch: MemoryOffset
  readonly code: MemoryOffset
  readonly make: () => void
  readonly fill: (high: number, low: number, count: number) => void
  readonly interpret: () => void
  readonly judge: (count: number, difficulty: number) => number
  readonly emit: () => number
}

/** Computes the function for the inputs that `fill` wrote: from the start of the batch to the address `end`. */
export type Run = (end: number) => void

/** The most hashes of one call, as machine.ts has memory for. An engine can switch to faster code only between two calls. */
export const BATCH = 256
const REGISTERS_BYTES = 80 // as in hashwx/machine.ts
/** WebAssembly drops a number's fraction and takes the rest modulo this, so a counter is passed as its upper and its lower half. */
const HALF_RANGE = 2 ** 32

export class HashwxMachine {
  /** The 32 bytes of which `make` makes the function. */
  readonly seed: Uint8Array
  readonly #exports: MachineExports

  constructor(exports: MachineExports) {
    this.#exports = exports
    const { memory, seed } = exports
    this.seed = new Uint8Array(memory.buffer, seed.value, 32)
  }

  make(): void {
    this.#exports.make()
  }

  /** True if the counter's hash starts with at least `difficulty` zero bits. Allocates nothing, and takes bounded time. */
  isProof(counter: number, difficulty: number): boolean {
    const { fill, interpret, judge } = this.#exports
    fill(counter / HALF_RANGE, counter, 1)
    interpret()
    return judge(1, difficulty) === 0
  }

  /** The function as a WebAssembly module of its own: compiled and given to `link`, it is what `search` runs. */
  emit(): Uint8Array<ArrayBuffer> {
    const { emit, code, memory } = this.#exports
    return new Uint8Array(memory.buffer.slice(code.value, code.value + emit()))
  }

  link(module: WebAssembly.Module): Run {
    const { exports } = new WebAssembly.Instance(module, { e: { m: this.#exports.memory } }) // names of hashwx/emit.ts
    return exports.run as Run
  }

  /** @returns the first of `count` counters, at most BATCH, that is a proof, or -1 */
  search(run: Run, start: number, count: number, difficulty: number): number {
    const { fill, judge, batch } = this.#exports
    fill(start / HALF_RANGE, start, count)
    run(batch.value + count * REGISTERS_BYTES)
    const index = judge(count, difficulty)
    return index < 0 ? -1 : start + index
  }
}

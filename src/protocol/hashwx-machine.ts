/** HashWX in WebAssembly, made of hashwx/ by `npm run build:hashwx`. One machine computes one thing at a time. */

interface Address {
  readonly value: number
}

export interface MachineExports {
  readonly memory: WebAssembly.Memory
  readonly seed: Address
  readonly result: Address
  readonly batch: Address
  readonly code: Address
  readonly make: () => void
  readonly fill: (high: number, low: number, count: number) => void
  readonly interpret: () => void
  readonly judge: (count: number, difficulty: number) => number
  readonly emit: () => number
}

/** Hashes what `fill` has prepared, up to an address. */
export type Run = (end: number) => void

/** Hashes that emitted code computes in one call: an engine replaces slow code of a function only between two calls. */
export const BATCH = 256
const REGISTERS_BYTES = 80
const WORD = 2 ** 32

export class HashwxMachine {
  /** The function's 32 bytes, which `make` reads. */
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
    fill(counter / WORD, counter, 1)
    interpret()
    return judge(1, difficulty) === 0
  }

  /** Emits the function as a module, for `search`. */
  emit(): Uint8Array<ArrayBuffer> {
    const { emit, code, memory } = this.#exports
    return new Uint8Array(memory.buffer.slice(code.value, code.value + emit()))
  }

  /** Links what was compiled of `emit`'s module. */
  link(module: WebAssembly.Module): Run {
    const { exports } = new WebAssembly.Instance(module, { e: { m: this.#exports.memory } })
    return exports.run as Run
  }

  /** @returns the first of `count` counters, at most BATCH, that is a proof, or -1 */
  search(run: Run, start: number, count: number, difficulty: number): number {
    const { fill, judge, batch } = this.#exports
    fill(start / WORD, start, count)
    run(batch.value + count * REGISTERS_BYTES)
    const index = judge(count, difficulty)
    return index < 0 ? -1 : start + index
  }
}

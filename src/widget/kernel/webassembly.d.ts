/**
 * The part of WebAssembly's JavaScript interface that solvers, tests and benches use. For the programs that run in
 * Node.js: its types leave the namespace to TypeScript's DOM library, and with that every browser global would seem to
 * be there.
 */

type BufferSource = ArrayBufferView | ArrayBuffer

declare namespace WebAssembly {
  class CompileError extends Error {}

  class Module {
    constructor(bytes: BufferSource)
  }

  class Instance {
    constructor(module: Module, imports?: Record<string, Record<string, unknown>>)
    readonly exports: Record<string, unknown>
  }

  class Memory {
    readonly buffer: ArrayBuffer
  }

  function validate(bytes: BufferSource): boolean
  function compile(bytes: BufferSource): Promise<Module>
}

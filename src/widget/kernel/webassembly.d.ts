/**
 * The part of WebAssembly's JavaScript interface that solvers, tests and benches use, for programs in Node.js. The types of
 * Node.js leave WebAssembly to TypeScript's DOM library, which would declare every browser global too.
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

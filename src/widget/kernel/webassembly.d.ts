/**
 * What solvers, tests and benches use of WebAssembly in Node.js, whose types leave it to TypeScript's DOM library. That would
 * declare every browser global too.
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

/** Declares the part of WebAssembly that programs in Node.js use. TypeScript's DOM library would declare every browser global too. */

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

/** hashwx/ compiled, by `npm run build:hashwx`. */
declare module '#hashwx' {
  const bytes: Uint8Array<ArrayBuffer>
  export default bytes
}

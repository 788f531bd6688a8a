/** Declares the part of WebAssembly that is used in Node.js. TypeScript's DOM library would declare all globals of browsers too. */

type BufferSource = ArrayBufferView | ArrayBuffer

declare namespace WebAssembly {
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
}

/** hashwx/ compiled, by `npm run build:hashwx`. */
declare module '#hashwx' {
  const bytes: Uint8Array<ArrayBuffer>
  export default bytes
}

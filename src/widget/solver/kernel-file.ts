/** Loads the kernel for a browser. Apart from the solvers, which only workers need. */

import { patience } from './blocked.ts'

/** The smallest module with a SIMD instruction: (func (result v128) i32.const 0 i8x16.splat). */
const SIMD_PROBE = [
  0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 8, 1, 6, 0, 65, 0, 253, 15, 11,
]

/**
 * Fetches the module of the best kernel that the browser supports; undefined if it supports none or the fetch fails. The
 * module is never pinned: without imports (wasm.ts) it reaches only its own memory. A wrong module finds a counter that the
 * service refuses, or none.
 *
 * @param base folder of the assets, ending in a slash
 */
export async function fetchKernel(base: string): Promise<ArrayBuffer | undefined> {
  if (typeof WebAssembly !== 'object') return undefined
  const hasSimd = WebAssembly.validate(Uint8Array.from(SIMD_PROBE))
  try {
    const response = await fetch(base + (hasSimd ? ASSET_NAMES.simdWasm : ASSET_NAMES.scalarWasm), {
      signal: patience(),
    })
    return response.ok ? await response.arrayBuffer() : undefined
  } catch {
    return undefined
  }
}

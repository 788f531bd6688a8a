/** Entry of a worker of the bench: one contender on one thread, our solver by its interface, the other by what it exports. */

import { initSync, solve_pow } from '@cap.js/wasm/browser/cap_wasm.js'
import * as hashwxExports from '#hashwx-script'
import type { Solver } from '../../../src/widget/solver/block.ts'
import { HASHWX_STRIDE, hashwxScriptSolver, hashwxSolver } from '../../../src/widget/solver/hashwx-solver.ts'
import { scriptSolver, wasmSolver } from '../../../src/widget/solver/solvers.ts'
import { CONTENDERS, type ContenderName, type Order, type RunResult } from '../contenders.ts'

interface Hasher {
  /** Hashes for some milliseconds. @returns how often */
  step(): number
  /** The first counter that gives the nonce so many zero bits, a multiple of four. */
  find(bits: number): number
}

const FIRST_COUNTER = CONTENDERS.simd.firstCounter
/** The widget's worker searches as many at once. */
const STRIDE = 20_000
/** No counter of a bench meets it, but the search compares as it always does. */
const UNREACHED_BITS = 32

const HASHERS: Readonly<Record<ContenderName, (nonce: string) => Promise<Hasher>>> = {
  simd: async nonce => ofSolver(wasmSolver(await bytesOf('/simd.wasm')), nonce),
  scalar: async nonce => ofSolver(wasmSolver(await bytesOf('/scalar.wasm')), nonce),
  script: async nonce => ofSolver(scriptSolver(), nonce),
  hashwx: async nonce => ofSolver(hashwxSolver(await bytesOf('/hashwx.wasm')), nonce, HASHWX_STRIDE),
  hashwxScript: async nonce => ofSolver(hashwxScriptSolver(hashwxExports), nonce, HASHWX_STRIDE),
  cap: async nonce => {
    initSync({ module: await bytesOf('/cap.wasm') })
    return ofCap(nonce)
  },
}

async function bytesOf(path: string): Promise<ArrayBuffer> {
  const response = await fetch(path)
  if (!response.ok) throw new Error(`${path}: status ${response.status}`)
  return response.arrayBuffer()
}

function ofSolver(solver: Solver, nonce: string, stride = STRIDE): Hasher {
  const search = solver(nonce, UNREACHED_BITS)
  let next = FIRST_COUNTER
  return {
    step() {
      const found = search(next, stride)
      const hashes = found < 0 ? stride : found - next + 1
      next += hashes
      return hashes
    },
    find(bits) {
      const first = solver(nonce, bits)
      for (let start = FIRST_COUNTER; ; start += stride) {
        const found = first(start, stride)
        if (found >= 0) return found
      }
    },
  }
}

/** Cap's solver tries all counters from 0 on and returns the one that it found, so its tries are one more. */
function ofCap(nonce: string): Hasher {
  // As many hexadecimal digits as Cap's own default asks for: 65,536 tries on average.
  const target = '0000'
  let steps = 0
  return {
    step: () => Number(solve_pow(nonce.slice(0, 24) + String(steps++).padStart(8, '0'), target)) + 1,
    find: bits => Number(solve_pow(nonce, '0'.repeat(bits / 4))),
  }
}

let hasher: Hasher

addEventListener('message', ({ data }: MessageEvent<Order>) => {
  // The page hears of reported errors, but not of rejected promises.
  carryOut(data).then(result => postMessage(result), reportError)
})

async function carryOut(order: Order): Promise<RunResult | number | undefined> {
  switch (order.kind) {
    case 'open':
      hasher = await HASHERS[order.contender](order.nonce)
      return
    case 'run':
      return run(order.ms)
    case 'find':
      return hasher.find(order.bits)
  }
}

function run(ms: number): RunResult {
  const startMs = performance.now()
  for (let hashes = 0; ; ) {
    hashes += hasher.step()
    const elapsedMs = performance.now() - startMs
    if (elapsedMs >= ms) return { hashes, ms: elapsedMs }
  }
}

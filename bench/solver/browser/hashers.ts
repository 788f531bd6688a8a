/** The contenders in the browser: our solver by its interface, the others by what they export. */

import { initSync, solve_pow } from '@cap.js/wasm/browser/cap_wasm.js'
import { createSHA256 } from 'hash-wasm'
import * as hashwxExports from '#hashwx-script'
import { leadingZeroBits, proofInput } from '../../../src/protocol/proof.ts'
import type { Solver } from '../../../src/widget/solver/block.ts'
import { HASHWX_STRIDE, hashwxScriptSolver, hashwxSolver } from '../../../src/widget/solver/hashwx-solver.ts'
import { scriptSolver, wasmSolver } from '../../../src/widget/solver/solvers.ts'
import { CONTENDERS, type ContenderName } from '../contenders.ts'

export interface Hasher {
  /** Hashes for some milliseconds; resolves with how often. */
  step(): number | Promise<number>
  /** The first counter that gives the nonce so many zero bits, a multiple of four. */
  find(bits: number): number | Promise<number>
}

const FIRST_COUNTER = CONTENDERS.simd.firstCounter
/** As the widget's worker. */
const STRIDE = 20_000
/** No counter of a bench meets it, but the search compares as it always does. */
const UNREACHED_BITS = 32

export const HASHERS: Readonly<Record<ContenderName, (nonce: string) => Promise<Hasher>>> = {
  simd: async nonce => ofSolver(wasmSolver(await bytesOf('/simd.wasm')), nonce),
  scalar: async nonce => ofSolver(wasmSolver(await bytesOf('/scalar.wasm')), nonce),
  script: async nonce => ofSolver(scriptSolver, nonce),
  hashwx: async nonce => ofSolver(hashwxSolver(await bytesOf('/hashwx.wasm')), nonce, HASHWX_STRIDE),
  hashwxScript: async nonce => ofSolver(hashwxScriptSolver(hashwxExports), nonce, HASHWX_STRIDE),
  cap: async nonce => {
    initSync({ module: await bytesOf('/cap.wasm') })
    return ofCap(nonce)
  },
  hashWasm: ofHashWasm,
  webCrypto: async nonce => ofWebCrypto(nonce),
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

/** It tries all counters from 0 on and tells the one it found, so that one more is the number of its tries. */
function ofCap(nonce: string): Hasher {
  // As many hexadecimal digits as Cap's own default asks for: 65,536 tries on average.
  const target = '0000'
  let steps = 0
  return {
    step: () => Number(solve_pow(nonce.slice(0, 24) + String(steps++).padStart(8, '0'), target)) + 1,
    find: bits => Number(solve_pow(nonce, '0'.repeat(bits / 4))),
  }
}

async function ofHashWasm(nonce: string): Promise<Hasher> {
  const hasher = await createSHA256()
  const digest = (input: Uint8Array) => {
    hasher.init()
    hasher.update(input)
    return hasher.digest('binary')
  }
  const running = inputAt(nonce)
  return {
    step() {
      for (let count = 0; count < 5000; count++) {
        if (leadingZeroBits(digest(running)) >= UNREACHED_BITS) throw new Error('a proof of 32 bits')
        increment(running)
      }
      return 5000
    },
    find(bits) {
      const input = inputAt(nonce)
      for (let counter = FIRST_COUNTER; ; counter++) {
        if (leadingZeroBits(digest(input)) >= bits) return counter
        increment(input)
      }
    },
  }
}

/** So many calls under way at once: one at a time, each waits for the turn of the event loop. */
const CALLS = 64

function ofWebCrypto(nonce: string): Hasher {
  // Each call copies its input before it returns.
  const digests = (input: Uint8Array<ArrayBuffer>) =>
    Promise.all(
      Array.from({ length: CALLS }, () => {
        const digest = crypto.subtle.digest('SHA-256', input)
        increment(input)
        return digest
      }),
    )
  const bitsOf = (digest: ArrayBuffer) => leadingZeroBits(new Uint8Array(digest))
  const running = inputAt(nonce)
  return {
    async step() {
      const all = await digests(running)
      if (all.some(digest => bitsOf(digest) >= UNREACHED_BITS)) throw new Error('a proof of 32 bits')
      return CALLS
    },
    async find(bits) {
      const input = inputAt(nonce)
      for (let start = FIRST_COUNTER; ; start += CALLS) {
        const met = (await digests(input)).findIndex(digest => bitsOf(digest) >= bits)
        if (met >= 0) return start + met
      }
    },
  }
}

function inputAt(nonce: string): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(proofInput(nonce, FIRST_COUNTER))
}

/** Adds one to the decimal number at the end. */
function increment(input: Uint8Array): void {
  let at = input.length - 1
  while (input[at] === 0x39) input[at--] = 0x30
  input[at]!++
}

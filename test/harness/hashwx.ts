/** HashWX word for word by its specification, with big integers: slow, and shares nothing with src/protocol/hashwx/. */

import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'

const lines = (name: string) =>
  readFileSync(new URL(`../vectors/${name}`, import.meta.url), 'utf8')
    .trim()
    .split('\n')

/** Made by the author's reference, whose interpreter and compiler agree. */
export const HASHWX_VECTORS = lines('hashwx.txt').map(line => {
  const [seed, input, hash] = line.split(' ') as [string, string, string]
  return { seed: Buffer.from(seed, 'hex'), input: BigInt(input), hash }
})

/** Appendix C. */
const SOURCES = lines('hashwx-sources.txt').map(line => [...line].map(Number))

const wrap = (value: bigint) => BigInt.asUintN(64, value)
const rotate = (value: bigint, bits: bigint) => wrap((value >> bits) | (value << (64n - bits)))

type Four = [bigint, bigint, bigint, bigint]

function sipRound([v0, v1, v2, v3]: Four): Four {
  v0 = wrap(v0 + v1)
  v2 = wrap(v2 + v3)
  v1 = rotate(v1, 51n) ^ v0
  v3 = rotate(v3, 48n) ^ v2
  v0 = rotate(v0, 32n)
  v2 = wrap(v2 + v1)
  v0 = wrap(v0 + v3)
  v1 = rotate(v1, 47n) ^ v2
  v3 = rotate(v3, 43n) ^ v0
  return [v0, v1, rotate(v2, 32n), v3]
}

/** Appendix A; each four words come out last to first, as the reference has it. */
function* randomWords(k0: bigint, k1: bigint, salt: bigint): Generator<bigint, never> {
  let state = sipRound([
    0x736f6d6570736575n ^ k0,
    0x646f72616e646f6dn ^ k1,
    0x6c7967656e657261n ^ k0,
    0x7465646279746573n ^ k1 ^ salt,
  ])
  state = sipRound(sipRound(sipRound([state[0] ^ salt, state[1], state[2] ^ 0xbbn, state[3]])))
  for (;;) {
    yield* [...state].reverse()
    state = [state[0] ^ k0, state[1] ^ k1, state[2] ^ k0, state[3] ^ k1]
    for (let round = 0; round < 4; round++) state = sipRound(state)
  }
}

type Operation = (target: bigint, immediate: bigint, source: bigint) => bigint

interface Instruction {
  readonly target: number
  readonly source: number
  readonly immediate: bigint
  readonly operation: Operation
}

const signed = (value: bigint) => BigInt.asIntN(64, value)
const SHIFTS = [rotate, (v: bigint, i: bigint) => wrap(signed(v) >> i), (v: bigint, i: bigint) => v >> i]
const MIXES = [
  (a: bigint, b: bigint) => a ^ b,
  (a: bigint, b: bigint) => a + b,
  (a: bigint, b: bigint) => a - b,
]
/** Table 2.3.1.1. */
const X: readonly Operation[] = SHIFTS.flatMap(shift =>
  MIXES.map(mix => (t, i, s) => wrap(mix(shift(t, i), s))),
)
/** Table 2.3.1.2. */
const MUL: readonly Operation[] = [
  (t, i, s) => wrap((t | i) * s),
  (t, i, s) => wrap((t ^ i) * s),
  (t, i, s) => wrap(wrap(t + i) * s),
]
const multiplyAndRotate: Operation = (t, i, s) => rotate(wrap(t * s), i)

/** Section 2.3: the instructions at 0 to 6 and 8. */
function makeProgram(words: readonly bigint[]): Instruction[] {
  const low = (index: number, modulus: number) => Number((words[index]! & 0xffffffffn) % BigInt(modulus))
  const targets = [0]
  for (let index = 1; index < 8; index++) {
    const other = Number((words[index - 1]! >> 32n) % BigInt(index + 1))
    targets[index] = targets[other] ?? index
    targets[other] = index
  }
  const sources = SOURCES[Number(words[7]! % 625n)]!.map(index => targets[index]!)
  return targets.map((target, index) => {
    const draw = words[8 + index]!
    const rotation = 1n + (draw % 63n)
    if (index === 0) {
      const source = 8 + Number(words[7]! % 2n)
      return { target, source, immediate: rotation, operation: multiplyAndRotate }
    }
    const source = sources[index]!
    if (index % 2 === 0) {
      const immediate = [1n, 9n, 33n][Number(draw % 3n)]!
      return { target, source, immediate, operation: MUL[low(index - 1, 3)]! }
    }
    const kind = low(index - 1, 9)
    return { target, source, immediate: kind < 3 ? rotation : 1n + (draw % 3n), operation: X[kind]! }
  })
}

/** Appendix D. */
export function slowHashwx(seed: Uint8Array, input: bigint): bigint {
  const view = new DataView(seed.buffer, seed.byteOffset, 32)
  const key = (offset: number) => view.getBigUint64(offset, true)
  const draws = randomWords(key(0), key(8), 2n ** 64n - 1n)
  const next = () => draws.next().value
  const programs = Array.from({ length: 32 }, () => makeProgram(Array.from({ length: 16 }, next)))
  const start = randomWords(key(16), key(24), input)
  const r = Array.from({ length: 8 }, () => start.next().value)
  r.push((r[4]! & ~7n) | 3n, (r[7]! & ~7n) | 5n)
  const memory = new Map<bigint, bigint>()
  for (const isOnMemory of [false, true]) {
    let branches = 32
    const run = ({ target, source, immediate, operation }: Instruction) => {
      const isOperand = isOnMemory && source < 8
      r[target] = operation(r[target]!, immediate, isOperand ? memory.get(r[source]! & 2040n)! : r[source]!)
    }
    programs.forEach((program, index) => {
      do program.slice(0, 7).forEach(run)
      while ((r[program[0]!.target]! & 32n) === 0n && branches-- > 0)
      branches = Math.max(0, branches)
      run(program[7]!)
      if (!isOnMemory) for (let j = 0; j < 8; j++) memory.set(BigInt(2040 - 64 * index - 8 * j), r[j]!)
    })
  }
  const left = sipRound(r.slice(0, 4) as Four)
  const right = sipRound(r.slice(4, 8) as Four)
  return left[3] ^ right[3] ^ r[9]!
}

/** Leading zero bits of a proof's hash, by the words of the contract. */
export function slowProofBits(nonce: string, counter: number): number {
  const seed = createHash('sha256')
    .update(`${nonce}${Math.floor(counter / 65_536)}`)
    .digest()
  return slowHashwx(seed, BigInt(counter)).toString(2).padStart(64, '0').indexOf('1')
}

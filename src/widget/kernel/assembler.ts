/** Writes what the kernel needs of WebAssembly's binary format (core specification 2.0, chapter 5). It runs in the build. */

export type Code = readonly number[]

export const I32 = 0x7f
export const V128 = 0x7b
type ValueType = typeof I32 | typeof V128

/** Unsigned LEB128. */
function unsigned(value: number): Code {
  const bytes: number[] = []
  let rest = value
  do {
    bytes.push((rest & 0x7f) | (rest > 0x7f ? 0x80 : 0))
    rest >>>= 7
  } while (rest !== 0)
  return bytes
}

/** Signed LEB128 of a 32-bit integer. */
function signed(value: number): Code {
  const bytes: number[] = []
  let rest = value | 0
  for (;;) {
    const byte = rest & 0x7f
    rest >>= 7
    const isLast = (rest === 0 && (byte & 0x40) === 0) || (rest === -1 && (byte & 0x40) !== 0)
    bytes.push(isLast ? byte : byte | 0x80)
    if (isLast) return bytes
  }
}

/** An opcode with SIMD's prefix. */
const simd = (opcode: number): Code => [0xfd, ...unsigned(opcode)]

/** Operands of a memory access: alignment (2 to the power of 2), and a constant offset. */
const memoryAt = (offset: number): Code => [2, ...unsigned(offset)]

export const constant = (value: number): Code => [0x41, ...signed(value)]
export const get = (local: number): Code => [0x20, ...unsigned(local)]
export const set = (local: number, value: Code): Code => [...value, 0x21, ...unsigned(local)]

const [LOOP, IF, END, BRANCH_IF, RETURN] = [0x03, 0x04, 0x0b, 0x0d, 0x0f]
const NO_RESULT = 0x40

/** The body runs once before the condition is tested. */
export const doWhile = (body: Code, condition: Code): Code => {
  return [LOOP, NO_RESULT, ...body, ...condition, BRANCH_IF, 0, END]
}
export const ifThen = (condition: Code, then: Code): Code => [...condition, IF, NO_RESULT, ...then, END]
export const returns = (value: Code): Code => [...value, RETURN]

type Binary = (left: Code, right: Code) => Code
const binary = (opcode: Code): Binary => {
  return (left, right) => [...left, ...right, ...opcode]
}

/** A final U is WebAssembly's `_u`: the operands are unsigned. */
export const i32 = {
  load: (offset: number, address: Code = constant(0)): Code => [...address, 0x28, ...memoryAt(offset)],
  add: binary([0x6a]),
  and: binary([0x71]),
  xor: binary([0x73]),
  shiftLeft: binary([0x74]),
  shiftRightU: binary([0x76]),
  rotateRight: binary([0x78]),
  lessU: binary([0x49]),
  isZero: (value: Code): Code => [...value, 0x45],
  trailingZeros: (value: Code): Code => [...value, 0x68],
} as const

export const i32x4 = {
  load: (offset: number, address: Code = constant(0)): Code => [
    ...address,
    ...simd(0x00),
    ...memoryAt(offset),
  ],
  /** The same integer in all lanes. */
  loadSplat: (offset: number): Code => [...constant(0), ...simd(0x09), ...memoryAt(offset)],
  splat: (value: Code): Code => [...value, ...simd(0x11)],
  add: binary(simd(0xae)),
  and: binary(simd(0x4e)),
  or: binary(simd(0x50)),
  xor: binary(simd(0x51)),
  shiftLeft: binary(simd(0xab)),
  shiftRightU: binary(simd(0xad)),
  equal: binary(simd(0x37)),
  /** Bit by bit. */
  select: (ones: Code, zeros: Code, mask: Code): Code => [...ones, ...zeros, ...mask, ...simd(0x52)],
  anyTrue: (value: Code): Code => [...value, ...simd(0x53)],
  /** The top bit of each lane, lane 0 in bit 0. */
  bitmask: (value: Code): Code => [...value, ...simd(0xa4)],
} as const

interface FunctionSource {
  readonly name: string
  readonly params: readonly ValueType[]
  readonly result: ValueType
  /** These come after the parameters. */
  readonly locals: readonly ValueType[]
  readonly body: Code
}

/** "\0asm", version 1. */
const HEADER: Code = [0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0]
const [TYPES, FUNCTIONS, MEMORIES, EXPORTS, CODE] = [1, 3, 5, 7, 10] as const // sections
const FUNCTION_TYPE = 0x60
const vector = (items: readonly Code[]): Code => [...unsigned(items.length), ...items.flat()]
const sized = (content: Code): Code => [...unsigned(content.length), ...content]
const section = (id: number, items: readonly Code[]): Code => [id, ...sized(vector(items))]
const text = (value: string): Code => sized([...Buffer.from(value)])

/** A module of one function, and 64 KiB of memory, which it exports as `memory`. */
export function assemble({ name, params, result, locals, body }: FunctionSource): Uint8Array {
  const declared = locals.map(type => [1, type])
  return Uint8Array.from([
    ...HEADER,
    ...section(TYPES, [[FUNCTION_TYPE, ...vector(params.map(type => [type])), ...vector([[result]])]]),
    ...section(FUNCTIONS, [[0]]),
    ...section(MEMORIES, [[0, 1]]),
    ...section(EXPORTS, [
      [...text('memory'), 2, 0],
      [...text(name), 0, 0],
    ]),
    ...section(CODE, [sized([...vector(declared), ...body, END])]),
  ])
}

/**
 * HashWX (tevador, 2026), the puzzle that gives graphics cards little, for server and browser. Every seed of 32 bytes makes a random
 * function of 32 small programs, which maps 64 bits to 64 bits. This file is AssemblyScript: `npm run build:hashwx` makes
 * dist/hashwx.wasm of it and emit.ts, and plain JavaScript of it alone. ../hashwx-machine.ts calls either. Who needs one hash, as the
 * server, or has no WebAssembly, calls `interpret`; a solver with WebAssembly runs what `emit` makes, ten times as fast.
 *
 *   seed   16 bytes make the programs, 16 bytes are the key of the registers' generator
 *   hash   registers r0 to r9 from key and input -> the 32 programs on registers, which fill 2 KiB of memory
 *          -> the 32 programs again, on operands from that memory -> the registers mixed to 64 bits
 *
 *   program  RMCG, X, MUL, X, MUL, X, MUL, repeat?, X: each repeats with probability 1/2, at most 32 times in all in a pass
 *
 * RMCG, a multiplicative congruential generator, multiplies by a constant register and rotates; its result says whether the program
 * repeats. X shifts a register and combines it with another, MUL multiplies two: the constants ROTATE to XOR_IMMEDIATE say how.
 *
 * doc/specification.md of February 2026 is in https://github.com/tevador/hashwx/tree/8052e66d5d9a3a427b3069b67625a91c99b5dfe8. It names
 * the generator's words in another order than the code beside it, which this follows: they come out last to first.
 */

export const PROGRAMS: usize = 32
/** RMCG, four X and three MUL. */
export const INSTRUCTIONS: usize = 8
export const INSTRUCTION_BYTES: usize = 4 // destination, source, immediate, kind
export const CHANGED_REGISTERS: u32 = 8 // r0 to r7; r8 and r9, which follow them, stay as they are
export const REGISTERS_BYTES: usize = 80
export const REPEATS_MAX = 32

/** JavaScript reads and writes `seed`, `result` and `batch` by their addresses. */
export const seed: usize = memory.data(32)
/** Holds the last hash after `judge`. */
export const result: usize = memory.data(8)
/** The registers of up to 256 inputs. */
export const batch: usize = memory.data(20_480) // 256 * REGISTERS_BYTES

export const SCRATCHPAD_BYTES: usize = 2048
export const scratchpad: usize = memory.data(2048)
const generator: usize = memory.data(48) // four words of state, two of the key
/** The 16 words of the generator that make one program. */
const words: usize = memory.data(128)
export const programs: usize = memory.data(1024) // PROGRAMS * INSTRUCTIONS * INSTRUCTION_BYTES

// X is `shift(destination) operation source`: the bits of a kind say which.
export const ROTATE = 1
export const KEEP_SIGN = 2
export const XOR = 4
export const SUBTRACT = 8
// MUL is `(destination operation immediate) * source`.
export const OR_IMMEDIATE = 1
export const XOR_IMMEDIATE = 2
// What random words choose from, as sums of the constants above. Branches instead of tables were mispredicted: 22 % more for a check.
const MUL_IMMEDIATES: usize = memory.data<u8>([1, 9, 33])
const MUL_KINDS: usize = memory.data<u8>([1, 2, 0])
/** X rotates, keeps the sign or fills with zeros, each with XOR, plus and minus. */
const X_KINDS: usize = memory.data<u8>([5, 1, 9, 6, 2, 10, 4, 0, 8])

/**
 * Bit i of the mask of instruction n: n may read the register that instruction i writes. The permutations of 0 to 7 within these
 * masks are the 625 of the specification's appendix C, in its order. The first instruction, RMCG, reads r8 or r9 in place of its source.
 */
const SOURCE_MASKS: usize = memory.data<u8>([
  0b11010101, 0b11111100, 0b11111010, 0b11110010, 0b11101010, 0b11001010, 0b10101011, 0b00000101,
])
const SOURCES = 625
const sources: usize = memory.data(5000) // SOURCES * INSTRUCTIONS
const chosen: usize = memory.data(8)
let listed: usize = 0
listSources(0, 0)
if (listed !== SOURCES) unreachable() // a mask is wrong

function listSources(index: usize, used: u32): void {
  if (index === INSTRUCTIONS) {
    store<u64>(sources + listed++ * INSTRUCTIONS, load<u64>(chosen))
    return
  }
  const free = <u32>load<u8>(SOURCE_MASKS + index) & ~used
  for (let source: u32 = 0; source < 8; source++) {
    const bit = (<u32>1) << source
    if (!(free & bit)) continue
    store<u8>(chosen + index, <u8>source)
    listSources(index + 1, used | bit)
  }
}

/** XORs the key into the generator's four words, then its rounds, a variant of SipHash. A hash ends with one of them, without a key. */
function mix(at: usize, rounds: u32, k0: u64 = 0, k1: u64 = 0): void {
  let a = load<u64>(at) ^ k0
  let b = load<u64>(at, 8) ^ k1
  let c = load<u64>(at, 16) ^ k0
  let d = load<u64>(at, 24) ^ k1
  for (let round: u32 = 0; round < rounds; round++) {
    a += b
    c += d
    b = rotr(b, 51) ^ a
    d = rotr(d, 48) ^ c
    a = rotr(a, 32) + d
    c += b
    b = rotr(b, 47) ^ c
    d = rotr(d, 43) ^ a
    c = rotr(c, 32)
  }
  store<u64>(at, a)
  store<u64>(at, b, 8)
  store<u64>(at, c, 16)
  store<u64>(at, d, 24)
}

/** The key has 16 bytes; the salt is the input of a hash, or -1 to make the programs. Constants are SipHash's, but 0xbb for its 0xff. */
function startGenerator(key: usize, salt: u64): void {
  const k0 = load<u64>(key)
  const k1 = load<u64>(key, 8)
  store<u64>(generator, k0, 32)
  store<u64>(generator, k1, 40)
  store<u64>(generator, 0x736f6d6570736575 ^ k0)
  store<u64>(generator, 0x646f72616e646f6d ^ k1, 8)
  store<u64>(generator, 0x6c7967656e657261 ^ k0, 16)
  store<u64>(generator, 0x7465646279746573 ^ k1 ^ salt, 24)
  mix(generator, 1)
  store<u64>(generator, load<u64>(generator) ^ salt)
  store<u64>(generator, load<u64>(generator, 16) ^ 0xbb, 16)
  mix(generator, 3)
}

/** Copies the generator's four words, the last first. `refillGenerator` makes the next four. */
function drawFour(to: usize): void {
  store<u64>(to, load<u64>(generator, 24))
  store<u64>(to, load<u64>(generator, 16), 8)
  store<u64>(to, load<u64>(generator, 8), 16)
  store<u64>(to, load<u64>(generator), 24)
}

function refillGenerator(): void {
  mix(generator, 4, load<u64>(generator, 32), load<u64>(generator, 40))
}

/** Writes the programs of `seed` to `programs`. */
export function make(): void {
  startGenerator(seed, <u64>-1)
  for (let index: usize = 0; index < PROGRAMS; index++) {
    for (let four: usize = 0; four < 4; four++) {
      drawFour(words + four * 32)
      refillGenerator()
    }
    makeProgram(programs + index * INSTRUCTIONS * INSTRUCTION_BYTES)
  }
}

function word(index: usize): u64 {
  return load<u64>(words + index * 8)
}

/**
 * The upper halves of words 0 to 6 shuffle the destinations, and their lower halves choose the kinds of instructions 1 to 7. Word 7
 * chooses the sources, and each of words 8 to 15 an instruction's immediate. What they choose from:
 *
 *   RMCG, 0         rotate by 1 to 63
 *   X, odd index    rotate by 1 to 63, or shift by 1 to 3 with sign or zeros; then XOR, plus or minus: 9 kinds
 *   MUL, even       OR, XOR or plus: 3 kinds; with 1, 9 or 33
 */
function makeProgram(at: usize): void {
  shuffleDestinations(at)
  const row = sources + <usize>(word(7) % SOURCES) * INSTRUCTIONS
  for (let index: usize = 0; index < INSTRUCTIONS; index++) {
    const draw = word(8 + index)
    const instruction = at + index * INSTRUCTION_BYTES
    const lowerHalf = <u32>word(index - 1) // Instruction 0 does not use it.
    let source = load<u8>(at + <usize>load<u8>(row + index) * INSTRUCTION_BYTES)
    let kind: u8 = 0
    let immediate: u64
    if (index === 0) {
      source = 8 + <u8>(word(7) & 1)
      immediate = 1 + (draw % 63)
    } else if (index % 2 === 0) {
      kind = load<u8>(MUL_KINDS + <usize>(lowerHalf % 3))
      immediate = load<u8>(MUL_IMMEDIATES + <usize>(draw % 3))
    } else {
      kind = load<u8>(X_KINDS + <usize>(lowerHalf % 9))
      immediate = 1 + select(draw % 63, draw % 3, kind & ROTATE)
    }
    store<u8>(instruction, source, 1)
    store<u8>(instruction, <u8>immediate, 2)
    store<u8>(instruction, kind, 3)
  }
}

/** Fisher-Yates, by the upper halves of seven words. */
function shuffleDestinations(at: usize): void {
  store<u8>(at, 0)
  for (let index: usize = 1; index < INSTRUCTIONS; index++) {
    const other = <usize>((word(index - 1) >> 32) % <u64>(index + 1))
    store<u8>(at + index * INSTRUCTION_BYTES, load<u8>(at + other * INSTRUCTION_BYTES))
    store<u8>(at + other * INSTRUCTION_BYTES, <u8>index)
  }
}

/** Fills the registers of `count` inputs, at most 256, from the one with the upper 32 bits `high` and the lower ones `low`. */
export function fill(high: u32, low: u32, count: usize): void {
  let input = ((<u64>high) << 32) | low
  for (let at = batch, end = batch + count * REGISTERS_BYTES; at < end; at += REGISTERS_BYTES) {
    startGenerator(seed + 16, input++)
    drawFour(at)
    refillGenerator()
    drawFour(at + 32)
    // RMCG's factors are 3 and 5 modulo 8: powers of such numbers take longest to repeat modulo 2^64.
    store<u64>(at, (load<u64>(at, 32) & ~7) | 3, 64)
    store<u64>(at, (load<u64>(at, 56) & ~7) | 5, 72)
  }
}

/** @returns the index of the first input in `batch` whose hash starts with at least `difficulty` zero bits, or -1 */
export function judge(count: i32, difficulty: i32): i32 {
  for (let index: i32 = 0; index < count; index++) {
    const at = batch + <usize>index * REGISTERS_BYTES
    mix(at, 1)
    mix(at + 32, 1)
    const hash = load<u64>(at, 24) ^ load<u64>(at, 56) ^ load<u64>(at, 72)
    store<u64>(result, hash)
    if (<i32>clz(hash) >= difficulty) return index
  }
  return -1
}

/** Runs both passes of the programs on the registers of the first input in `batch`. */
export function interpret(): void {
  runPass(false)
  runPass(true)
}

function runPass(isOnMemory: bool): void {
  let repeatsLeft = REPEATS_MAX
  let stored = scratchpad + SCRATCHPAD_BYTES // The specification fills the memory from its end.
  for (let index: usize = 0; index < PROGRAMS; index++) {
    const program = programs + index * INSTRUCTIONS * INSTRUCTION_BYTES
    for (;;) {
      const instruction = load<u32>(program)
      const to = registerAt(instruction)
      const product = load<u64>(to) * load<u64>(registerAt(instruction >> 8))
      const value = rotr(product, <u64>((instruction >> 16) & 63))
      store<u64>(to, value)
      runX(load<u32>(program, 4), isOnMemory)
      runMul(load<u32>(program, 8), isOnMemory)
      runX(load<u32>(program, 12), isOnMemory)
      runMul(load<u32>(program, 16), isOnMemory)
      runX(load<u32>(program, 20), isOnMemory)
      runMul(load<u32>(program, 24), isOnMemory)
      if (value & 32 || repeatsLeft === 0) break // by the specification, bit 5 is 0 where the program repeats
      repeatsLeft--
    }
    runX(load<u32>(program, 28), isOnMemory)
    if (isOnMemory) continue
    for (let register: usize = 0; register < CHANGED_REGISTERS; register++) {
      stored -= 8
      store<u64>(stored, load<u64>(batch + register * 8))
    }
  }
}

function registerAt(field: u32): usize {
  return batch + <usize>(field & 15) * 8
}

function operand(instruction: u32, isOnMemory: bool): u64 {
  const value = load<u64>(registerAt(instruction >> 8))
  return isOnMemory ? load<u64>(scratchpad + <usize>(value & <u64>(SCRATCHPAD_BYTES - 8))) : value // a multiple of 8
}

/** Selects values by the random kind, here and in `runMul`, because a processor would mispredict branches. */
function runX(instruction: u32, isOnMemory: bool): void {
  const to = registerAt(instruction)
  const kind = instruction >> 24
  const bits = <u64>((instruction >> 16) & 63)
  const value = load<u64>(to)
  const source = operand(instruction, isOnMemory)
  // What enters on the left: the bits that leave on the right, the sign, or zeros.
  const sign = <u64>(<i64>value >> 63)
  const entering = kind & ROTATE ? value : kind & KEEP_SIGN ? sign : 0
  const shifted = (value >> bits) | (entering << (64 - bits))
  store<u64>(to, kind & XOR ? shifted ^ source : shifted + (kind & SUBTRACT ? 0 - source : source))
}

function runMul(instruction: u32, isOnMemory: bool): void {
  const to = registerAt(instruction)
  const kind = instruction >> 24
  const immediate = <u64>((instruction >> 16) & 63)
  const value = load<u64>(to)
  const factor =
    kind & OR_IMMEDIATE ? value | immediate : kind & XOR_IMMEDIATE ? value ^ immediate : value + immediate
  store<u64>(to, factor * operand(instruction, isOnMemory))
}

/**
 * The solvers' inner loop, as a WebAssembly module: `scan(from, to, mask)` tries the last four digits `from` to `to - 1` of a
 * block (../solver/block.ts). It must try at least one; SIMD tries a multiple of four. It returns the first whose digest has all
 * bits of `mask` clear in its first word, or -1.
 *
 * One description of SHA-256 makes both modules: scalar tries one counter at a time, SIMD four, one a lane. The rounds are
 * unrolled, so instead of moving words each round rotates their names. What the last four digits do not change (`isConstant`) is
 * read from `MEMORY`, where block.ts computes it once a block.
 */

import { isConstant, MEMORY, VARYING_WORD } from '../solver/block.ts'
import { INITIAL_STATE, ROUND_CONSTANTS } from '../solver/sha256.ts'
import {
  assemble,
  type Code,
  constant,
  doWhile,
  get,
  I32,
  i32,
  i32x4,
  ifThen,
  returns,
  set,
  V128,
} from './assembler.ts'

interface Lanes {
  readonly type: typeof I32 | typeof V128
  readonly count: number
  readonly add: (left: Code, right: Code) => Code
  readonly and: (left: Code, right: Code) => Code
  readonly xor: (left: Code, right: Code) => Code
  readonly shiftRight: (word: number, bits: number) => Code
  readonly rotateRight: (word: number, bits: number) => Code
  /** Bits of e choose from f where set, from g where clear. */
  readonly choose: (e: number, f: number, g: number) => Code
  /** A word of the block, the same in all lanes. */
  readonly shared: (offset: number) => Code
  readonly roundConstant: (t: number) => Code
  /** Words of memory, one for each lane. */
  readonly load: (offset: number, address: Code) => Code
}

const SCALAR: Lanes = {
  type: I32,
  count: 1,
  add: i32.add,
  and: i32.and,
  xor: i32.xor,
  shiftRight: (word, bits) => i32.shiftRightU(get(word), constant(bits)),
  rotateRight: (word, bits) => i32.rotateRight(get(word), constant(bits)),
  choose: (e, f, g) => i32.xor(i32.and(i32.xor(get(f), get(g)), get(e)), get(g)),
  shared: offset => i32.load(offset),
  roundConstant: t => constant(ROUND_CONSTANTS[t]!),
  load: i32.load,
}

const SIMD: Lanes = {
  type: V128,
  count: 4,
  add: i32x4.add,
  and: i32x4.and,
  xor: i32x4.xor,
  shiftRight: (word, bits) => i32x4.shiftRightU(get(word), constant(bits)),
  rotateRight: (word, bits) =>
    i32x4.or(i32x4.shiftRightU(get(word), constant(bits)), i32x4.shiftLeft(get(word), constant(32 - bits))),
  choose: (e, f, g) => i32x4.select(get(f), get(g), get(e)),
  shared: offset => i32x4.loadSplat(offset),
  roundConstant: t => i32x4.loadSplat(MEMORY.roundConstants + 4 * t),
  load: i32x4.load,
}

/** Locals of `scan`: first its parameters. */
const FROM = 0
const TO = 1
const MASK = 2
/** The mask in all lanes. */
const WIDE_MASK = 3
const FIRST_STATE = 4
/** (a xor b) of this round, which is (b xor c) of the next. */
const CHANGED = FIRST_STATE + 8
const CHANGED_BEFORE = CHANGED + 1
const FIRST_SCHEDULE = CHANGED + 2
const LOCAL_COUNT = FIRST_SCHEDULE + 16 - 3 // parameters are not declared

const word = (t: number): number => FIRST_SCHEDULE + (t & 15)

export function buildKernel(kind: 'simd' | 'scalar'): Uint8Array {
  const lanes = kind === 'simd' ? SIMD : SCALAR
  const body = [
    ...set(WIDE_MASK, kind === 'simd' ? i32x4.splat(get(MASK)) : get(MASK)),
    ...doWhile(
      [
        ...firstRound(lanes),
        ...remainingRounds(lanes),
        ...returnIfFound(kind),
        ...set(FROM, i32.add(get(FROM), constant(lanes.count))),
      ],
      i32.lessU(get(FROM), get(TO)),
    ),
    ...constant(-1),
  ]
  return assemble({
    name: 'scan',
    params: [I32, I32, I32],
    result: I32,
    locals: Array.from({ length: LOCAL_COUNT }, () => lanes.type),
    body,
  })
}

/** State word `index` (0 is a) before round t: each round renames a to b, b to c, ... h to a. */
function stateWord(index: number, t: number): number {
  return FIRST_STATE + ((index - t + 64) & 7)
}

/** `MEMORY.state` is the state after this round without the varying word, which is added to a and e. */
function firstRound({ load, shared, add }: Lanes): Code {
  const t = VARYING_WORD + 1
  const code: number[] = []
  const digits = i32.shiftLeft(get(FROM), constant(2))
  code.push(...set(word(VARYING_WORD), load(MEMORY.digits, digits)))
  for (let index = 0; index < 8; index++) {
    const isVarying = index === 0 || index === 4
    const state = shared(MEMORY.state + 4 * index)
    code.push(...set(stateWord(index, t), isVarying ? add(state, get(word(VARYING_WORD))) : state))
  }
  return code
}

function remainingRounds(lanes: Lanes): Code {
  const { xor } = lanes
  const code: number[] = []
  const start = VARYING_WORD + 1 // CHANGED_BEFORE needs an even number.
  code.push(...set(CHANGED_BEFORE, xor(get(stateWord(1, start)), get(stateWord(2, start)))))
  for (let t = start; t < 64; t++) {
    if (t >= 16 && !isConstant[t]) code.push(...scheduleWord(lanes, t))
    code.push(...roundOf(lanes, t))
  }
  return code
}

/** W[t]: its varying terms, plus the sum of the others. */
function scheduleWord(lanes: Lanes, t: number): Code {
  const { add, xor, shiftRight, rotateRight, shared } = lanes
  const sigma = (source: number, first: number, second: number, shift: number) =>
    xor(xor(rotateRight(source, first), rotateRight(source, second)), shiftRight(source, shift))
  const terms: Code[] = []
  if (!isConstant[t - 16]) terms.push(get(word(t - 16)))
  if (!isConstant[t - 15]) terms.push(sigma(word(t - 15), 7, 18, 3))
  if (!isConstant[t - 7]) terms.push(get(word(t - 7)))
  if (!isConstant[t - 2]) terms.push(sigma(word(t - 2), 17, 19, 10))
  if (terms.length < 4) terms.unshift(shared(MEMORY.scheduleSums + 4 * t))
  return set(word(t), terms.reduce(add))
}

function roundOf(lanes: Lanes, t: number): Code {
  const { add, and, xor, rotateRight, choose, shared, roundConstant } = lanes
  const a = stateWord(0, t)
  const b = stateWord(1, t)
  const d = stateWord(3, t)
  const e = stateWord(4, t)
  const f = stateWord(5, t)
  const g = stateWord(6, t)
  const h = stateWord(7, t)
  const sum = (source: number, first: number, second: number, third: number) =>
    xor(xor(rotateRight(source, first), rotateRight(source, second)), rotateRight(source, third))
  const input = isConstant[t] ? shared(MEMORY.roundInputs + 4 * t) : add(get(word(t)), roundConstant(t))
  const [changed, before] = t % 2 === 0 ? [CHANGED, CHANGED_BEFORE] : [CHANGED_BEFORE, CHANGED]
  const code: number[] = [...set(h, add(add(get(h), input), add(choose(e, f, g), sum(e, 6, 11, 25))))]
  // The digest's first word needs no e of the last round.
  if (t < 63) code.push(...set(d, add(get(d), get(h))))
  // majority(a, b, c) = ((a xor b) and (b xor c)) xor b
  code.push(...set(changed, xor(get(a), get(b))))
  const majority = xor(and(get(changed), get(before)), get(b))
  code.push(...set(h, add(add(get(h), majority), sum(a, 2, 13, 22))))
  return code
}

/** The digest's first word is a after the last round, plus a's initial value. */
function returnIfFound(kind: 'simd' | 'scalar'): Code {
  const a = get(stateWord(0, 64))
  if (kind === 'scalar') {
    const masked = i32.and(i32.add(a, constant(INITIAL_STATE[0]!)), get(WIDE_MASK))
    return ifThen(i32.isZero(masked), returns(get(FROM)))
  }
  const hits = i32x4.equal(
    i32x4.and(i32x4.add(a, i32x4.splat(constant(INITIAL_STATE[0]!))), get(WIDE_MASK)),
    i32x4.splat(constant(0)),
  )
  const found = stateWord(0, 64)
  return [
    ...set(found, hits),
    ...ifThen(
      i32x4.anyTrue(get(found)),
      returns(i32.add(get(FROM), i32.trailingZeros(i32x4.bitmask(get(found))))),
    ),
  ]
}

/**
 * Writes the solvers' inner loop as WebAssembly text, dist/simd.wat and dist/scalar.wat, which `npm run build:kernels` assembles.
 * `scan(from, to, mask)` tries the last four digits `from` to `to - 1` of a block (../solver/block.ts), and returns the first whose
 * digest has all bits of `mask` clear in its first word, or -1. It must try at least one; SIMD tries a multiple of four.
 *
 * One description of SHA-256 makes both modules: scalar tries one counter at a time, SIMD four, one a lane. The rounds are
 * unrolled, so instead of moving words each round rotates their names. What the last four digits do not change (`isConstant`) is
 * read from `MEMORY`, where block.ts computes it once a block (what each part holds, the class `Block` there says).
 */

import { writeFileSync } from 'node:fs'
import { isConstant, MEMORY, VARYING_WORD } from '../solver/block.ts'
import { INITIAL_STATE, ROUND_CONSTANTS } from '../solver/sha256.ts'

/** An instruction's text; operands are the texts of other instructions. */
const instruction =
  (name: string) =>
  (...operands: readonly (string | number)[]) =>
    `(${name} ${operands.join(' ')})`
const get = instruction('local.get')
const set = instruction('local.set')
const constant = instruction('i32.const')

/** Instructions on the words of one lane. */
const SCALAR = {
  type: 'i32',
  count: 1,
  add: instruction('i32.add'),
  and: instruction('i32.and'),
  xor: instruction('i32.xor'),
  shiftRight: (value: string, bits: number) => `(i32.shr_u ${value} ${constant(bits)})`,
  rotateRight: (value: string, bits: number) => `(i32.rotr ${value} ${constant(bits)})`,
  /** Bits of e choose from f where set, from g where clear. */
  choose: (e: string, f: string, g: string) => `(i32.xor (i32.and (i32.xor ${f} ${g}) ${e}) ${g})`,
  /** The same integer in all lanes. */
  splat: (value: string) => value,
  /** The same word of memory in all lanes. */
  loadSplat: (address: number) => `(i32.load offset=${address} (i32.const 0))`,
  /** Words of memory, one for each lane. Its operands are `offset=N align=N`, and the address. */
  load: instruction('i32.load'),
  roundConstant: (t: number) => constant(ROUND_CONSTANTS[t]!),
  /** Leaves `scan` if the value is zero in a lane. */
  returnIfZero: (value: string) => `(if (i32.eqz ${value}) (then (return (local.get $from))))`,
}

type Lanes = typeof SCALAR

/** The same on vectors of four lanes. */
const SIMD: Lanes = {
  type: 'v128',
  count: 4,
  add: instruction('i32x4.add'),
  and: instruction('v128.and'),
  xor: instruction('v128.xor'),
  shiftRight: (value, bits) => `(i32x4.shr_u ${value} ${constant(bits)})`,
  rotateRight: (value, bits) =>
    `(v128.or (i32x4.shr_u ${value} ${constant(bits)}) (i32x4.shl ${value} ${constant(32 - bits)}))`,
  choose: (e, f, g) => `(v128.bitselect ${f} ${g} ${e})`,
  splat: instruction('i32x4.splat'),
  loadSplat: address => `(v128.load32_splat offset=${address} (i32.const 0))`,
  load: instruction('v128.load'),
  roundConstant: t => SIMD.loadSplat(MEMORY.roundConstants + 4 * t),
  returnIfZero: value => `(local.set $zeros (i32x4.eq ${value} (i32x4.splat (i32.const 0))))
(if (v128.any_true (local.get $zeros)) (then
  (return (i32.add (local.get $from) (i32.ctz (i32x4.bitmask (local.get $zeros)))))))`,
}

/** Schedule word t; a word takes the place of the one 16 before it. */
const word = (t: number) => `$w${t & 15}`
/** State word `index` (0 is a) before round t: each round renames a to b, b to c, ... h to a. */
const stateWord = (index: number, t: number) => `$s${(index - t + 64) & 7}`
/** Holds (a xor b) of round t, which is (b xor c) of the next. */
const changed = (t: number) => `$changed${t & 1}`

function kernelText(lanes: Lanes): string {
  const { type, count, add, and, splat, returnIfZero } = lanes
  const numbered = (name: string, length: number) => Array.from({ length }, (_, index) => name + index)
  const locals = ['$masks', '$zeros', ...numbered('$changed', 2), ...numbered('$s', 8), ...numbered('$w', 16)]
  const digestWord = add(get(stateWord(0, 64)), splat(constant(INITIAL_STATE[0]!)))
  return `(module
(memory (export "memory") 1)
(func (export "scan") (param $from i32) (param $to i32) (param $mask i32) (result i32)
${locals.map(name => `(local ${name} ${type})`).join('\n')}
${set('$masks', splat(get('$mask')))}
(loop $counters
${firstRounds(lanes).join('\n')}
${remainingRounds(lanes).join('\n')}
${returnIfZero(and(digestWord, get('$masks')))}
(local.set $from (i32.add (local.get $from) (i32.const ${count})))
(br_if $counters (i32.lt_u (local.get $from) (local.get $to))))
(i32.const -1)))
`
}

/** Rounds 0 to 11. `MEMORY.state` is the state after them without the varying word, which only has to be added to a and e. */
function firstRounds({ load, loadSplat, add }: Lanes): string[] {
  const t = VARYING_WORD + 1
  const varying = word(VARYING_WORD)
  const states = [...Array(8).keys()].map(index => {
    const state = loadSplat(MEMORY.state + 4 * index)
    return set(stateWord(index, t), index % 4 === 0 ? add(state, get(varying)) : state)
  })
  return [
    set(varying, load(`offset=${MEMORY.digits} align=4`, '(i32.shl (local.get $from) (i32.const 2))')),
    ...states,
  ]
}

function remainingRounds(lanes: Lanes): string[] {
  const start = VARYING_WORD + 1
  const code = [set(changed(start - 1), lanes.xor(get(stateWord(1, start)), get(stateWord(2, start))))]
  for (let t = start; t < 64; t++) {
    if (t >= 16 && !isConstant[t]) code.push(scheduleWord(lanes, t))
    code.push(...round(lanes, t))
  }
  return code
}

/** W[t]: its varying terms, plus the sum of the others. */
function scheduleWord({ add, xor, shiftRight, rotateRight, loadSplat }: Lanes, t: number): string {
  const sigma = (value: string, first: number, second: number, shift: number) =>
    xor(xor(rotateRight(value, first), rotateRight(value, second)), shiftRight(value, shift))
  const terms: string[] = []
  if (!isConstant[t - 16]) terms.push(get(word(t - 16)))
  if (!isConstant[t - 15]) terms.push(sigma(get(word(t - 15)), 7, 18, 3))
  if (!isConstant[t - 7]) terms.push(get(word(t - 7)))
  if (!isConstant[t - 2]) terms.push(sigma(get(word(t - 2)), 17, 19, 10))
  const hasConstantTerms = terms.length < 4
  if (hasConstantTerms) terms.unshift(loadSplat(MEMORY.scheduleSums + 4 * t))
  const sum = terms.reduce((left, right) => add(left, right))
  return set(word(t), sum)
}

function round({ add, and, xor, rotateRight, choose, loadSplat, roundConstant }: Lanes, t: number): string[] {
  const names = [...Array(8).keys()].map(index => stateWord(index, t))
  const [a, b, , d, e, f, g, h] = names.map(name => get(name))
  const sum = (value: string, first: number, second: number, third: number) =>
    xor(xor(rotateRight(value, first), rotateRight(value, second)), rotateRight(value, third))
  const input = isConstant[t] ? loadSplat(MEMORY.roundInputs + 4 * t) : add(get(word(t)), roundConstant(t))
  // majority(a, b, c) = ((a xor b) and (b xor c)) xor b
  const majority = xor(and(get(changed(t)), get(changed(t - 1))), b!)
  return [
    set(names[7]!, add(add(h!, input), add(choose(e!, f!, g!), sum(e!, 6, 11, 25)))),
    t < 63 ? set(names[3]!, add(d!, h!)) : '', // h is the sum above now; the digest's first word needs no e of the last round
    set(changed(t), xor(a!, b!)),
    set(names[7]!, add(add(h!, majority), sum(a!, 2, 13, 22))),
  ]
}

for (const [name, lanes] of Object.entries({ simd: SIMD, scalar: SCALAR }))
  writeFileSync(new URL(`../../../dist/${name}.wat`, import.meta.url), kernelText(lanes))

/**
 * The GPU's program, in WGSL. A call of `main` tries 100 counters. All counters of a dispatch, which makes many calls, have the
 * same first eight digits:
 *
 *   word   0 ........ 7 | 8 ...... 9  | 10        | 11        | 12         13  14  15
 *          nonce        | first eight | next four | last four | 80000000   0   0   384 (length in bits)
 *                       | digits      | digits    | digits    |
 *
 * The page computes rounds 0 to 9 once a dispatch, and a call computes what depends on word 10 before its loop. The rounds are
 * unrolled: `a5` and `e5` are a and e after round 5, b and f after round 6, c and g after round 7, d and h after round 8.
 */

import { isConstant, VARYING_WORD } from './block.ts'
import { INITIAL_STATE, ROUND_CONSTANTS } from './sha256.ts'

/**
 * The buffer that the page shares with the GPU, in words: the state after the common rounds, their message words, the difficulty's
 * mask, the dispatch's first counter modulo COMMON_COUNTERS, and the offset from it of the counter that was found.
 */
export const BUFFER = { state: 0, input: 8, mask: 18, first: 19, found: 20, size: 21 } as const
/** The value of `found` until a counter is found. */
export const NOT_FOUND = 0xffffffff

export const COMMON_ROUNDS = 10
/** Counters that share their first eight digits. */
export const COMMON_COUNTERS = 1e8
const CALLS_PER_GROUP = 64
/** A dispatch starts at a multiple of this, so in each call the last two digits run from 00 to 99. */
const COUNTERS_PER_CALL = 100
export const COUNTERS_PER_GROUP = CALLS_PER_GROUP * COUNTERS_PER_CALL

const rotate = (bits: number): string => `((x >> ${bits}u) | (x << ${32 - bits}u))`

const FUNCTIONS = `
struct Search { state: array<u32, 8>, input: array<u32, 10>, mask: u32, first: u32, found: atomic<u32> }
@group(0) @binding(0) var<storage, read_write> search: Search;
fn schedule0(x: u32) -> u32 { return ${rotate(7)} ^ ${rotate(18)} ^ (x >> 3u); }
fn schedule1(x: u32) -> u32 { return ${rotate(17)} ^ ${rotate(19)} ^ (x >> 10u); }
fn sum0(x: u32) -> u32 { return ${rotate(2)} ^ ${rotate(13)} ^ ${rotate(22)}; }
fn sum1(x: u32) -> u32 { return ${rotate(6)} ^ ${rotate(11)} ^ ${rotate(25)}; }
fn choice(x: u32, y: u32, z: u32) -> u32 { return z ^ (x & (y ^ z)); }
fn majority(x: u32, y: u32, z: u32) -> u32 { return (x & y) | (z & (x | y)); }
fn digits(n: u32) -> u32 {
  return 0x30303030u + ((n / 1000u) << 24u) + ((n / 100u % 10u) << 16u) + ((n / 10u % 10u) << 8u) + n % 10u;
}`

export function shaderText(): string {
  const before: string[] = []
  for (let t = 0; t < COMMON_ROUNDS; t++) before.push(`let w${t} = search.input[${t}];`)
  for (let index = 0; index < 4; index++) {
    const t = COMMON_ROUNDS - 1 - index
    before.push(`let a${t} = search.state[${index}]; let e${t} = search.state[${index + 4}];`)
  }
  before.push(roundText(COMMON_ROUNDS))
  const within: string[] = []
  for (let t = VARYING_WORD; t < 64; t++) {
    if (t > 15) (isConstant[t] ? before : within).push(scheduleText(t))
    within.push(roundText(t))
  }
  return `${FUNCTIONS}
@compute @workgroup_size(${CALLS_PER_GROUP}) fn main(@builtin(global_invocation_id) call: vec3<u32>) {
  let offset = call.x * ${COUNTERS_PER_CALL}u;
  let counter = search.first + offset;
  let mask = search.mask;
  let w10 = digits(counter / 10000u);
  let w12 = 0x80000000u; let w13 = 0u; let w14 = 0u; let w15 = 384u;
  ${before.join('\n  ')}
  let start = digits(counter % 10000u);
  for (var n = 0u; n < ${COUNTERS_PER_CALL}u; n++) {
    let w11 = start + ((n / 10u) << 8u) + n % 10u;
    ${within.join('\n    ')}
    if (((a63 + ${INITIAL_STATE[0]! >>> 0}u) & mask) == 0u) {
      atomicMin(&search.found, offset + n);
      return;
    }
  }
}`
}

const scheduleText = (t: number): string =>
  `let w${t} = schedule1(w${t - 2}) + w${t - 7} + schedule0(w${t - 15}) + w${t - 16};`

function roundText(t: number): string {
  const [a, b, c, d] = [1, 2, 3, 4].map(back => `a${t - back}`)
  const [e, f, g, h] = [1, 2, 3, 4].map(back => `e${t - back}`)
  const input = `${ROUND_CONSTANTS[t]! >>> 0}u + w${t}`
  return `let t${t} = ${h} + sum1(${e}) + choice(${e}, ${f}, ${g}) + ${input};
    let a${t} = t${t} + sum0(${a}) + majority(${a}, ${b}, ${c}); let e${t} = ${d} + t${t};`
}

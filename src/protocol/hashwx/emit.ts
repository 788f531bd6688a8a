/**
 * Emits the programs of machine.ts as a WebAssembly module, because engines run that ten times as fast as `interpret`. Its one
 * function, `run(end)`, does what `interpret` does for all inputs from `batch` to the address `end`, in the memory that it imports.
 * Opcodes are those of WebAssembly's core specification 1.0, chapter 5; machine.ts explains instructions, their bits, and the passes.
 */

import {
  batch,
  CHANGED_REGISTERS,
  INSTRUCTION_BYTES,
  INSTRUCTIONS,
  KEEP_SIGN,
  OR_IMMEDIATE,
  PROGRAMS,
  programs,
  REGISTERS_BYTES,
  REPEATS_MAX,
  ROTATE,
  SCRATCHPAD_BYTES,
  SUBTRACT,
  scratchpad,
  XOR,
  XOR_IMMEDIATE,
} from './machine'

// The build compiles this file, which hands on what JavaScript uses of machine.ts.
export { batch, fill, interpret, judge, make, result, seed } from './machine'

/** The emitted module starts here, and takes 12 KiB. */
export const code: usize = memory.data(16_384)
/** The address of the next byte to write. */
let cursor: usize = 0

// biome-ignore format: each line is one section
const PREFIX: usize = memory.data<u8>([
  0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0, // "\0asm", version 1
  1, 5, 1, 0x60, 1, 0x7f, 0, // a type: i32 to nothing
  2, 8, 1, 1, 0x65, 1, 0x6d, 2, 0, 1, // imports the memory "e" "m", of one page or more
  3, 2, 1, 0, // a function of that type
  7, 7, 1, 3, 0x72, 0x75, 0x6e, 0, 0, // exports it as "run"
])
const PREFIX_BYTES: usize = 38

// Locals of `run`: its parameter `end`, the address of the present input's registers, the repeats that are left in the pass, whether
// the program repeats now, and r0 to r9.
const END: u32 = 0
const INPUT: u32 = 1
const REPEATS_LEFT: u32 = 2
const REPEATS_NOW: u32 = 3
const R0: u32 = 4
const REGISTERS = <u32>REGISTERS_BYTES / 8

const NO_RESULT: u32 = 0x40
const I64: u32 = 0x7e
const I32: u32 = 0x7f
const LOOP: u32 = 0x03
const END_BLOCK: u32 = 0x0b
const BRANCH_IF: u32 = 0x0d
const GET: u32 = 0x20
const SET: u32 = 0x21
const I64_LOAD: u32 = 0x29
const I64_STORE: u32 = 0x37
const I32_CONST: u32 = 0x41
const I64_CONST: u32 = 0x42
const I32_NE: u32 = 0x47
const I32_LESS: u32 = 0x49
const I64_IS_ZERO: u32 = 0x50
const I32_ADD: u32 = 0x6a
const I32_SUB: u32 = 0x6b
const I32_AND: u32 = 0x71
const I64_ADD: u32 = 0x7c
const I64_SUB: u32 = 0x7d
const I64_MUL: u32 = 0x7e
const I64_AND: u32 = 0x83
const I64_OR: u32 = 0x84
const I64_XOR: u32 = 0x85
const I64_SHIFT_SIGNED: u32 = 0x87
const I64_SHIFT: u32 = 0x88
const I64_ROTATE: u32 = 0x8a
const I32_WRAP: u32 = 0xa7

/** @returns the length of the module, which starts at `code` */
export function emit(): usize {
  memory.copy(code, PREFIX, PREFIX_BYTES)
  cursor = code + PREFIX_BYTES
  put(10) // the id of the code section
  const section = beginSized()
  put(1) // one function
  const body = beginSized()
  put(2) // two groups of locals: INPUT, REPEATS_LEFT and REPEATS_NOW; the registers
  put2(3, I32)
  put2(REGISTERS, I64)
  putConstant(I32_CONST, <u32>batch)
  put2(SET, INPUT)
  put2(LOOP, NO_RESULT)
  for (let register: u32 = 0; register < REGISTERS; register++) {
    put2(GET, INPUT)
    putAccess(I64_LOAD, register * 8)
    put2(SET, R0 + register)
  }
  putPass(false)
  putPass(true)
  for (let register: u32 = 0; register < CHANGED_REGISTERS; register++) {
    put2(GET, INPUT)
    put2(GET, R0 + register)
    putAccess(I64_STORE, register * 8)
  }
  put2(GET, INPUT)
  putConstant(I32_CONST, <u32>REGISTERS_BYTES)
  put(I32_ADD)
  put2(SET, INPUT)
  put2(GET, INPUT)
  put2(GET, END)
  put(I32_LESS)
  put2(BRANCH_IF, 0) // to the start of the loop over inputs
  put2(END_BLOCK, END_BLOCK) // Ends the loop, then the function.
  endSized(body)
  endSized(section)
  return cursor - code
}

/** The first pass fills the scratchpad, from its end down; the second (`isOnMemory`) takes its operands from there. */
function putPass(isOnMemory: bool): void {
  putConstant(I32_CONST, REPEATS_MAX)
  put2(SET, REPEATS_LEFT)
  let stored = <u32>(scratchpad + SCRATCHPAD_BYTES)
  for (let index: usize = 0; index < PROGRAMS; index++) {
    const program = programs + index * INSTRUCTIONS * INSTRUCTION_BYTES
    const last = program + (INSTRUCTIONS - 1) * INSTRUCTION_BYTES
    put2(LOOP, NO_RESULT)
    putRmcg(load<u32>(program))
    for (let at = program + INSTRUCTION_BYTES; at < last; at += 2 * INSTRUCTION_BYTES) {
      putX(load<u32>(at), isOnMemory)
      putMul(load<u32>(at + INSTRUCTION_BYTES), isOnMemory)
    }
    putRepeat(load<u32>(program))
    put(END_BLOCK)
    putX(load<u32>(last), isOnMemory)
    if (isOnMemory) continue
    for (let register: u32 = 0; register < CHANGED_REGISTERS; register++) {
      stored -= 8
      putConstant(I32_CONST, 0) // The offset is the whole address.
      put2(GET, R0 + register)
      putAccess(I64_STORE, stored)
    }
  }
}

function putRmcg(instruction: u32): void {
  put2(GET, destination(instruction))
  put2(GET, source(instruction))
  put(I64_MUL)
  putConstant(I64_CONST, immediate(instruction))
  put(I64_ROTATE)
  put2(SET, destination(instruction))
}

/** Repeats if bit 5 of RMCG's result is 0 and repeats are left. RMCG's register still has it: no other instruction writes there. */
function putRepeat(rmcg: u32): void {
  put2(GET, destination(rmcg))
  putConstant(I64_CONST, 32)
  put2(I64_AND, I64_IS_ZERO)
  put2(GET, REPEATS_LEFT)
  putConstant(I32_CONST, 0)
  put2(I32_NE, I32_AND)
  put2(SET, REPEATS_NOW)
  put2(GET, REPEATS_LEFT)
  put2(GET, REPEATS_NOW)
  put(I32_SUB)
  put2(SET, REPEATS_LEFT)
  put2(GET, REPEATS_NOW)
  put2(BRANCH_IF, 0) // to the start of the program's loop
}

function putX(instruction: u32, isOnMemory: bool): void {
  const kind = instruction >> 24
  put2(GET, destination(instruction))
  putConstant(I64_CONST, immediate(instruction))
  put(kind & ROTATE ? I64_ROTATE : kind & KEEP_SIGN ? I64_SHIFT_SIGNED : I64_SHIFT)
  putOperand(instruction, isOnMemory)
  put(kind & XOR ? I64_XOR : kind & SUBTRACT ? I64_SUB : I64_ADD)
  put2(SET, destination(instruction))
}

function putMul(instruction: u32, isOnMemory: bool): void {
  const kind = instruction >> 24
  put2(GET, destination(instruction))
  putConstant(I64_CONST, immediate(instruction))
  put(kind & OR_IMMEDIATE ? I64_OR : kind & XOR_IMMEDIATE ? I64_XOR : I64_ADD)
  putOperand(instruction, isOnMemory)
  put(I64_MUL)
  put2(SET, destination(instruction))
}

function putOperand(instruction: u32, isOnMemory: bool): void {
  put2(GET, source(instruction))
  if (!isOnMemory) return
  put(I32_WRAP)
  putConstant(I32_CONST, <u32>SCRATCHPAD_BYTES - 8) // a multiple of 8, within the scratchpad
  put(I32_AND)
  putAccess(I64_LOAD, <u32>scratchpad)
}

function destination(instruction: u32): u32 {
  return R0 + (instruction & 255)
}

function source(instruction: u32): u32 {
  return R0 + ((instruction >> 8) & 255)
}

function immediate(instruction: u32): u32 {
  return (instruction >> 16) & 255
}

function put(byte: u32): void {
  store<u8>(cursor++, <u8>byte)
}

function put2(first: u32, second: u32): void {
  put(first)
  put(second)
}

/** Writes the value, which is not negative, as signed LEB128: bit 6 of the last byte is the sign, so it must be 0. */
function putConstant(opcode: u32, value: u32): void {
  put(opcode)
  for (; value > 63; value >>= 7) put((value & 127) | 128)
  put(value)
}

/** Loads or stores at the address on the stack plus `offset`, which is written as unsigned LEB128. */
function putAccess(opcode: u32, offset: u32): void {
  put2(opcode, 3) // aligned to 2^3 bytes
  for (; offset > 127; offset >>= 7) put((offset & 127) | 128)
  put(offset)
}

/** Leaves room for a size in five bytes of LEB128, which `endSized` writes. Returns where the sized part starts. */
function beginSized(): usize {
  cursor += 5
  return cursor
}

function endSized(start: usize): void {
  const size = cursor - start
  for (let digit: usize = 0; digit < 5; digit++)
    store<u8>(start - 5 + digit, <u8>((size >> (7 * digit)) & 127) | (digit < 4 ? 128 : 0))
}

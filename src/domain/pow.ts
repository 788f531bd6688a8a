/** Checks proofs of work (protocol/proof.ts): SHA-256 with node:crypto, HashWX with the WebAssembly of protocol/hashwx/. */

import { hash } from 'node:crypto'
import hashwxBytes from '#hashwx'
import { HashwxMachine, type MachineExports } from '../protocol/hashwx-machine.ts'
import {
  COUNTER_MAX,
  COUNTERS_PER_FUNCTION,
  NONCE_LENGTH,
  PROOF_INPUT_MAX,
  type PuzzleName,
} from '../protocol/proof.ts'
import { viewsByLength, writeDecimal, writeText } from './bytes.ts'

/** The text that is hashed (bytes.ts). */
const input = Buffer.alloc(PROOF_INPUT_MAX)
const inputs = viewsByLength(input)

const hashwx = new WebAssembly.Module(hashwxBytes)
const checker = newHashwx()

/**
 * @param counter integer, 0 to 2^53 - 1; anything else is no proof
 * @param difficulty 0 to 32 bits
 */
export function checkProof(
  nonce: string,
  counter: number,
  difficulty: number,
  puzzle: PuzzleName = 'sha256',
): boolean {
  if (nonce.length !== NONCE_LENGTH || !isCounter(counter)) return false
  return puzzle === 'sha256'
    ? isSha256Proof(digestOf(nonce, counter), difficulty)
    : makeFunction(checker, nonce, counter).isProof(counter, difficulty)
}

/** SHA-256 of nonce and decimal number. A 'binary' (latin1) digest needs no typed array, and is three times as fast as a Buffer. */
function digestOf(nonce: string, value: number): string {
  writeText(input, 0, nonce)
  return hash('sha256', inputs[writeDecimal(input, NONCE_LENGTH, value)]!, 'binary')
}

/** Makes a machine for the caller alone, who keeps it for a whole search: each reserves memory until it is garbage-collected. */
export function newHashwx(): HashwxMachine {
  return new HashwxMachine(new WebAssembly.Instance(hashwx).exports as unknown as MachineExports)
}

/** COUNTERS_PER_FUNCTION counters of a nonce share a HashWX function. Puts the counter's one into the machine, and returns the machine. */
export function makeFunction(machine: HashwxMachine, nonce: string, counter: number): HashwxMachine {
  writeText(machine.seed, 0, digestOf(nonce, Math.floor(counter / COUNTERS_PER_FUNCTION)))
  machine.make()
  return machine
}

function isSha256Proof(digest: string, difficulty: number): boolean {
  const firstWord =
    (digest.charCodeAt(0) << 24) |
    (digest.charCodeAt(1) << 16) |
    (digest.charCodeAt(2) << 8) |
    digest.charCodeAt(3)
  return Math.clz32(firstWord) >= difficulty
}

/** Refuses negative zero. */
export function isCounter(value: number): boolean {
  return Number.isInteger(value) && value >= 0 && value <= COUNTER_MAX && !Object.is(value, -0)
}

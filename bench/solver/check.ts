/** Checks the results of a solver with node:crypto. */

import { createHash } from 'node:crypto'
import { leadingZeroBits, proofInput } from '../../src/protocol/proof.ts'
import { CONTENDERS, type ContenderName } from './contenders.ts'

/** The same in every run, so that runs are comparable. */
export function nonceOf(purpose: string): string {
  return createHash('sha256').update(`bench:solver ${purpose}`).digest('hex').slice(0, 32)
}

export function isProof(nonce: string, counter: number, bits: number): boolean {
  return leadingZeroBits(createHash('sha256').update(proofInput(nonce, counter)).digest()) >= bits
}

/** What a contender must find: hashes per second count only if none is left out. */
export function firstProof(contender: ContenderName, nonce: string, bits: number): number {
  for (let counter: number = CONTENDERS[contender].firstCounter; ; counter++) {
    if (isProof(nonce, counter, bits)) return counter
  }
}

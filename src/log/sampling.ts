/**
 * Decides by the nonce which visitors' successes are logged. The nonce is the same at all steps of a visit and on all hosts.
 * So of each visitor either all steps are logged or none.
 */

import { NONCE_LENGTH } from '../protocol/proof.ts'

/** How many last digits of the nonce decide. They are from a MAC (domain/nonce.ts), so all values are equally likely. */
const DIGITS = 6
const VALUES = 16 ** DIGITS

export class Sample {
  readonly #below: number

  /** @param share 0 (none) to 1 (all) */
  constructor(share: number) {
    this.#below = share * VALUES
  }

  /** @param nonce 32 lowercase hexadecimal characters */
  has(nonce: string): boolean {
    let value = 0
    for (let index = NONCE_LENGTH - DIGITS; index < NONCE_LENGTH; index++) {
      const code = nonce.charCodeAt(index)
      value = value * 16 + (code < 0x61 ? code - 0x30 : code - 0x57)
    }
    return value < this.#below
  }
}

/**
 * The layout of the proof of work: the one definition that the server, every solver, the tests and the benches use.
 *
 *   input  = nonce (32 lowercase hex characters, as sent) ++ counter (decimal ASCII, no leading zeros)
 *   digest = SHA-256(input)
 *   valid  = digest starts with at least `difficulty` zero bits, most significant bit of byte 0 first
 *
 * The input is 33 to 48 bytes, so it always pads to exactly one 64-byte SHA-256 block (at most 55 bytes fit).
 * This folder imports nothing: it is shared with the browser.
 */

/** Length of a nonce in characters. */
export const NONCE_LENGTH = 32

/** Largest counter: 2^53 - 1, the last integer that JSON and JavaScript carry exactly (16 digits). */
export const COUNTER_MAX = Number.MAX_SAFE_INTEGER

export const DIFFICULTY_MIN = 16
export const DIFFICULTY_MAX = 28

/** Shortest and longest proof input in bytes: a counter has 1 to 16 digits. */
export const PROOF_INPUT_MIN = NONCE_LENGTH + 1
export const PROOF_INPUT_MAX = NONCE_LENGTH + 16

/** The proof input as text; its bytes are its ASCII codes. */
export function proofInput(nonce: string, counter: number): string {
  return nonce + String(counter)
}

/** Whether a string is a nonce as the service writes it: 32 lowercase hexadecimal characters. */
export function isNonceText(text: string): boolean {
  return /^[0-9a-f]{32}$/.test(text)
}

/** Number of zero bits at the start of a digest, most significant bit of byte 0 first. */
export function leadingZeroBits(digest: ArrayLike<number>): number {
  let bits = 0
  for (let index = 0; index < digest.length; index++) {
    const byte = digest[index]!
    if (byte !== 0) return bits + Math.clz32(byte) - 24
    bits += 8
  }
  return bits
}

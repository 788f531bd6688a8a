/** Property tests: random values of the domain, and a fixed seed that fast-check prints on failure. */

import fc from 'fast-check'
import { parseAddress } from '../../src/addresses/address.ts'

/** The same inputs on every run; POWGATE_TEST_SEED sets another seed. */
export function seeded(numRuns: number) {
  return { numRuns, seed: Number(process.env.POWGATE_TEST_SEED ?? 20_260_101) }
}

export const nonces = fc
  .uint8Array({ minLength: 16, maxLength: 16 })
  .map(bytes => Buffer.from(bytes).toString('hex'))

/** Any counter; each power of ten comes up with its neighbours, because the number of digits changes there. */
export const counters = fc.oneof(
  fc.maxSafeNat(),
  fc
    .integer({ min: 0, max: 15 })
    .chain(power => fc.integer({ min: -1, max: 1 }).map(near => Math.max(0, 10 ** power + near))),
  fc.constantFrom(0, Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER - 1),
)

/** In the service's form (`Address`): 16 bytes, one character each; IPv4 is mapped, as `::ffff:a.b.c.d`. */
export const addresses = fc.oneof(
  fc.ipV4().map(text => parseAddress(text)!),
  fc.uint8Array({ minLength: 16, maxLength: 16 }).map(bytes => Buffer.from(bytes).toString('latin1')),
)

export const siteKeys = fc
  .array(fc.constantFrom(...'0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'), {
    minLength: 22,
    maxLength: 22,
  })
  .map(characters => `site_${characters.join('')}`)

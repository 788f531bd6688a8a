/**
 * The numbers of the difficulty's rules, as one value. `DEFAULT_POLICY` decides for visitors. Another policy can decide beside
 * it, for a trial. The rules themselves are in difficulty.ts and sources.ts.
 */

import { DIFFICULTY_MAX, DIFFICULTY_MIN } from '../protocol/proof.ts'
import { integer, type Kind, number, objectSchema } from './kinds.ts'

/** A network around an address. */
export interface NetworkLevel {
  readonly prefixBits: number
  /** Accepted proofs a minute that cost nothing. */
  readonly free: number
  /** Bits for each doubling above it. */
  readonly slope: number
}

const MANY = 1_000_000
const COUNT = number('N', 0, MANY)
const COUNT_FROM_ONE = number('N', 1, MANY)
const ADDED_BITS = integer('BITS', 0, DIFFICULTY_MAX - DIFFICULTY_MIN)

/** Proofs are counted at the levels of the live policy, so another policy has some of these. */
function networks(...live: readonly NetworkLevel[]) {
  const prefixes = live.map(({ prefixBits }) => prefixBits)
  const prefixBits = { enum: prefixes, description: `one of ${prefixes.join(', ')}` }
  const items = objectSchema(
    { prefixBits, free: COUNT_FROM_ONE.schema, slope: COUNT.schema },
    { description: 'an object with prefixBits, free and slope', required: ['prefixBits', 'free', 'slope'] },
  )
  const description = `a list of networks: ${prefixes.map(prefix => `/${prefix}`).join(', ')}`
  const kind: Kind<readonly NetworkLevel[]> = { schema: { type: 'array', items, description } }
  return { live: Object.freeze(live), kind }
}

/** Each number as it is live, and what it may be in another policy. docs/policy.md lists them. */
export const POLICY_NUMBERS = {
  /** Up to this share of its limit, an address is a normal visitor (a family, a few tabs). */
  quietShare: { live: 0.25, kind: number('N', 0, 0.99) },
  /** The most for an address's own requests. */
  addressBitsMax: { live: 4, kind: ADDED_BITS },
  /** Failures that cost one bit. */
  failuresPerBit: { live: 3, kind: COUNT_FROM_ONE },
  failureBitsMax: { live: 3, kind: ADDED_BITS },
  /**
   * The most for what somebody else does. While people behind the address succeed, most of them are not who fails, or asks
   * without solving.
   */
  neighbourBitsMax: { live: 1, kind: ADDED_BITS },
  loadBitsMax: { live: 4, kind: ADDED_BITS },
  /** For networks that come once: they are not the load. */
  loadBitsOnceMax: { live: 1, kind: ADDED_BITS },
  /** Load up to this multiple of the usual load is a good day, not an attack. */
  loadTolerated: { live: 4, kind: COUNT_FROM_ONE },
  /** Lower usual loads count as this one, in proofs a second: a few families at once are no attack on a quiet site. */
  usualRateMin: { live: 0.5, kind: number('N', 0.01, MANY) },
  /** So many accepted proofs of an address lately, and it comes again. */
  addressProofsFree: { live: 2, kind: COUNT },
  /** The most for the networks around an address, while all networks together bring more than is tolerated. */
  networkBitsMax: { live: 10, kind: ADDED_BITS },
  /** The most otherwise: visits that only moved to other networks are no flood. */
  networkBitsQuietMax: { live: 3, kind: ADDED_BITS },
  /** So many times its usual proofs, a network with a day of history costs its people one bit at most. */
  historySpeaksFor: { live: 128, kind: COUNT },
  /** Offices and campuses share a network. A hundred times as many proofs from one provider's block are no campus. */
  networksV4: networks({ prefixBits: 24, free: 80, slope: 1 }, { prefixBits: 20, free: 240, slope: 1 }),
  /** A customer gets a /64 to a /48, so a whole /48 is worth little more than one address. */
  networksV6: networks(
    { prefixBits: 56, free: 20, slope: 1.5 },
    { prefixBits: 48, free: 30, slope: 3 },
    { prefixBits: 40, free: 240, slope: 1 },
  ),
}

type Numbers = typeof POLICY_NUMBERS
export type DifficultyPolicy = { readonly [Name in keyof Numbers]: Numbers[Name]['live'] }

function ofEach<Value>(value: (row: Numbers[keyof Numbers]) => Value) {
  return Object.fromEntries(Object.entries(POLICY_NUMBERS).map(([name, row]) => [name, value(row)]))
}

export const DEFAULT_POLICY = Object.freeze(ofEach(({ live }) => live)) as DifficultyPolicy
export const POLICY_KINDS = ofEach<Kind<unknown>>(({ kind }) => kind)

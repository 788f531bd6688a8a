/** The JSON Schema of a file of a policy, and of a site's shadow. domain/policy.ts says what each number is. */

import Type from '#typebox'
import type { PolicyOverrides } from '../domain/difficulty.ts'
import { DEFAULT_POLICY, type NetworkLevel } from '../domain/policy.ts'
import { DIFFICULTY_MAX, DIFFICULTY_MIN } from '../protocol/proof.ts'

const CLOSED = { additionalProperties: false } as const
const MANY = 1_000_000

function number(minimum: number, maximum = MANY) {
  return Type.Number({ description: `a number from ${minimum} to ${maximum}`, minimum, maximum })
}

function bits(minimum = 0, maximum = DIFFICULTY_MAX - DIFFICULTY_MIN) {
  return Type.Integer({ description: `an integer from ${minimum} to ${maximum}`, minimum, maximum })
}

/** Proofs are counted at the levels of the live policy, so another policy has some of these. */
function networks(levels: readonly NetworkLevel[]) {
  const prefixes = levels.map(({ prefixBits }) => prefixBits)
  const description = 'an object with prefixBits, free and slope'
  const prefixBits = Type.Enum(prefixes, { description: `one of ${prefixes.join(', ')}` })
  const level = Type.Object({ prefixBits, free: number(1), slope: number(0) }, { description, ...CLOSED })
  return Type.Array(level, { description: `a list of networks: ${prefixes.map(n => `/${n}`).join(', ')}` })
}

const FIELDS = {
  base: bits(DIFFICULTY_MIN, DIFFICULTY_MAX),
  min: bits(DIFFICULTY_MIN, DIFFICULTY_MAX),
  max: bits(DIFFICULTY_MIN, DIFFICULTY_MAX),
  quietShare: number(0, 0.99),
  addressBitsMax: bits(),
  failuresPerBit: number(1),
  failureBitsMax: bits(),
  neighbourBitsMax: bits(),
  loadBitsMax: bits(),
  loadBitsOnceMax: bits(),
  loadTolerated: number(1),
  usualRateMin: number(0.01),
  addressProofsFree: number(0),
  ownerProofsFree: number(0),
  networkBitsMax: bits(),
  networksV4: networks(DEFAULT_POLICY.networksV4),
  networksV6: networks(DEFAULT_POLICY.networksV6),
} satisfies Record<keyof PolicyOverrides, unknown>

export const POLICY_SCHEMA = Type.Partial(Type.Object(FIELDS), {
  title: 'Policy that decides beside the live one, without effect',
  description: 'an object with numbers of a policy',
  ...CLOSED,
})

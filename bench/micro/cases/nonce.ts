/** src/domain/nonce.ts */

import { type Case, isText } from '../case.ts'
import {
  CHALLENGE_LIFETIME_MS,
  DIFFICULTY,
  INPUTS,
  NOW_MS,
  nonceFor,
  SITE_KEY,
  termsOf,
  visits,
} from '../inputs.ts'
import { isNaiveChallenge, naiveChallenge } from '../naive.ts'

const SOURCE = { area: 'domain/nonce', source: 'src/domain/nonce.ts' }
const EXPIRES_AT_MS = NOW_MS + CHALLENGE_LIFETIME_MS

export const NONCE_CASES: readonly Case[] = [
  {
    // The random bits are given: the service takes them from a pool that it fills 16 KiB at a time.
    name: 'mint a nonce',
    ...SOURCE,
    step: () => {
      const all = visits()
      const step = (index: number) => {
        const { issuedAtMs, randomBits, binding } = all[index]!
        return isText(nonceFor(issuedAtMs, randomBits, binding))
      }
      return { kind: 'sync', count: INPUTS, step }
    },
    naive: () => {
      const all = visits()
      const step = (index: number) => {
        const { addressText } = all[index]!
        return isText(naiveChallenge(SITE_KEY, addressText, DIFFICULTY, EXPIRES_AT_MS).signature)
      }
      return { kind: 'sync', count: INPUTS, step }
    },
    naiveNote: 'randomBytes, createHmac over the fields',
  },
  {
    name: 'read a nonce',
    ...SOURCE,
    step: () => {
      const all = visits()
      const step = (index: number) => {
        const { nonce, binding } = all[index]!
        return termsOf(nonce, binding) === undefined ? 0 : 1
      }
      return { kind: 'sync', count: INPUTS, step }
    },
    naive: () => {
      const all = visits().map(({ addressText }) => ({
        addressText,
        challenge: naiveChallenge(SITE_KEY, addressText, DIFFICULTY, EXPIRES_AT_MS),
      }))
      const step = (index: number) => {
        const { addressText, challenge } = all[index]!
        return isNaiveChallenge(challenge, SITE_KEY, addressText) ? 1 : 0
      }
      return { kind: 'sync', count: INPUTS, step }
    },
    naiveNote: 'createHmac, timingSafeEqual; cannot tell another address from forged',
  },
]

/** src/domain/token.ts */

import { type Case, isText } from '../case.ts'
import {
  claimsIn,
  INPUTS,
  NOW_MS,
  SITE_KEY,
  TOKEN_LIFETIME_MS,
  tokenFor,
  type Visit,
  visits,
} from '../inputs.ts'
import { type NaiveClaims, naiveClaims, naiveToken } from '../naive.ts'

const SOURCE = { area: 'domain/token', source: 'src/domain/token.ts' }

function naiveClaimsFor({ nonce, addressText, claims }: Visit): NaiveClaims {
  const { score } = claims
  return { iat: NOW_MS, exp: NOW_MS + TOKEN_LIFETIME_MS, jti: nonce, sub: SITE_KEY, ip: addressText, score }
}

export const TOKEN_CASES: readonly Case[] = [
  {
    name: 'mint a token',
    ...SOURCE,
    step: () => {
      const all = visits().map(({ claims }) => claims)
      return { kind: 'sync', count: INPUTS, step: index => isText(tokenFor(all[index]!)) }
    },
    naive: () => {
      const all = visits().map(naiveClaimsFor)
      return { kind: 'sync', count: INPUTS, step: index => isText(naiveToken(all[index]!)) }
    },
    naiveNote: 'JSON Web Token, HS256; the score can be read by anybody',
  },
  {
    name: 'read a token',
    ...SOURCE,
    step: () => {
      const tokens = visits().map(({ token }) => token)
      const step = (index: number) => (claimsIn(tokens[index]!) === undefined ? 0 : 1)
      return { kind: 'sync', count: INPUTS, step }
    },
    naive: () => {
      const tokens = visits().map(visit => naiveToken(naiveClaimsFor(visit)))
      const step = (index: number) => (naiveClaims(tokens[index]!) === undefined ? 0 : 1)
      return { kind: 'sync', count: INPUTS, step }
    },
    naiveNote: 'JSON Web Token, HS256',
  },
]

/** Every case: the request path first, then its steps in the order of the path. */

import type { Case } from '../case.ts'
import { ADDRESS_CASES } from './address.ts'
import { ENDPOINT_CASES } from './endpoints.ts'
import { JUDGING_CASES } from './judging.ts'
import { LIMIT_CASES } from './limits.ts'
import { NONCE_CASES } from './nonce.ts'
import { POW_CASES } from './pow.ts'
import { SCHEMA_CASES } from './schemas.ts'
import { SIGNING_CASES } from './signing.ts'
import { SITE_CASES } from './site.ts'
import { TOKEN_CASES } from './token.ts'

export const CASES: readonly Case[] = [
  ...ENDPOINT_CASES,
  ...SCHEMA_CASES,
  ...NONCE_CASES,
  ...POW_CASES,
  ...JUDGING_CASES,
  ...TOKEN_CASES,
  ...SIGNING_CASES,
  ...LIMIT_CASES,
  ...ADDRESS_CASES,
  ...SITE_CASES,
]

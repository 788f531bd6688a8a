/** src/domain/hmac.ts and keyring.ts */

import { createHmac } from 'node:crypto'
import { Hmac } from '../../../src/domain/hmac.ts'
import { equalInConstantTime } from '../../../src/domain/keyring.ts'
import { type Case, isText } from '../case.ts'
import { INPUTS, visits } from '../inputs.ts'
import { isSameText } from '../naive.ts'
import { randomHex, seededRandom } from '../random.ts'

/** As long as what a nonce's address MAC covers. */
const MESSAGE_BYTES = 55
const KEY = Buffer.alloc(32, 7)
/** Of a token's HMAC. */
const HMAC_CHARACTERS = 43

function messages(): string[] {
  const random = seededRandom(3)
  return Array.from({ length: INPUTS }, () => randomHex(random, MESSAGE_BYTES))
}

/** A token's HMAC and an equal text in memory of its own. */
function hmacPairs(): { a: string; b: string }[] {
  const hmacs = visits().map(({ token }) => Buffer.from(token.slice(-HMAC_CHARACTERS)))
  return hmacs.map(bytes => ({ a: bytes.toString('latin1'), b: bytes.toString('latin1') }))
}

export const SIGNING_CASES: readonly Case[] = [
  {
    name: `HMAC of ${MESSAGE_BYTES} bytes`,
    area: 'domain/hmac',
    source: 'src/domain/hmac.ts',
    step: () => {
      const hmac = new Hmac(KEY, MESSAGE_BYTES)
      const texts = messages()
      const step = (index: number) => {
        hmac.message.write(texts[index]!, 0, MESSAGE_BYTES, 'latin1')
        return isText(hmac.sign(MESSAGE_BYTES, 'hex'))
      }
      return { kind: 'sync', count: INPUTS, step }
    },
    naive: () => {
      const texts = messages()
      const step = (index: number) =>
        isText(createHmac('sha256', KEY).update(texts[index]!, 'latin1').digest('hex'))
      return { kind: 'sync', count: INPUTS, step }
    },
    naiveNote: 'createHmac, digest in hex',
  },
  {
    name: 'constant-time comparison',
    area: 'domain/keyring',
    source: 'src/domain/keyring.ts',
    step: () => {
      const pairs = hmacPairs()
      const step = (index: number) => {
        const { a, b } = pairs[index]!
        return equalInConstantTime(a, b, HMAC_CHARACTERS) ? 1 : 0
      }
      return { kind: 'sync', count: INPUTS, step }
    },
    naive: () => {
      const pairs = hmacPairs()
      const step = (index: number) => {
        const { a, b } = pairs[index]!
        return isSameText(a, b) ? 1 : 0
      }
      return { kind: 'sync', count: INPUTS, step }
    },
    naiveNote: 'timingSafeEqual of two new buffers',
  },
]

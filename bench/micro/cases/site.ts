/** src/domain/site.ts: what each request names, and whether it may. */

import { createHash } from 'node:crypto'
import {
  apiKeyId,
  apiKeySha256,
  isApiKeyOf,
  isSiteKey,
  newApiKey,
  newSiteKey,
} from '../../../src/domain/site.ts'
import type { Case } from '../case.ts'
import { INPUTS, NOW_MS, SITE_KEY } from '../inputs.ts'
import { isSameText } from '../naive.ts'
import { randomHex, seededRandom } from '../random.ts'

const SOURCE = { area: 'domain/site', source: 'src/domain/site.ts' }

function randomBytesOf(random: () => number): Buffer {
  return Buffer.from(randomHex(random, 192), 'hex')
}

function apiKeys() {
  const random = seededRandom(17)
  return Array.from({ length: INPUTS }, () => {
    const key = newApiKey(randomBytesOf(random))
    const id = apiKeyId(key)!
    return {
      key,
      record: { id, siteKey: SITE_KEY, secretSha256: apiKeySha256(key), createdAt: NOW_MS, revokedAt: null },
    }
  })
}

export const SITE_CASES: readonly Case[] = [
  {
    name: 'form of a site key',
    ...SOURCE,
    step: () => {
      const random = seededRandom(19)
      const keys = Array.from({ length: INPUTS }, () => newSiteKey(randomBytesOf(random)))
      return { kind: 'sync', count: INPUTS, step: index => (isSiteKey(keys[index]!) ? 1 : 0) }
    },
  },
  {
    name: 'API key check',
    ...SOURCE,
    step: () => {
      const all = apiKeys()
      const step = (index: number) => {
        const { key, record } = all[index]!
        return isApiKeyOf(record, key) ? 1 : 0
      }
      return { kind: 'sync', count: INPUTS, step }
    },
    naive: () => {
      const all = apiKeys()
      const step = (index: number) => {
        const { key, record } = all[index]!
        return isSameText(createHash('sha256').update(key).digest('hex'), record.secretSha256) ? 1 : 0
      }
      return { kind: 'sync', count: INPUTS, step }
    },
    naiveNote: 'createHash, timingSafeEqual (several services hash a password, which takes 100 ms)',
  },
]

/** Every case: the whole requests first, then their steps in the order of the path. */

import { createHash, createHmac, hash } from 'node:crypto'
import { BlockList, isIPv4 } from 'node:net'
import { AddressSet, parseAddress } from '../../src/domain/address.ts'
import { Hmac } from '../../src/domain/keyring.ts'
import { checkProof } from '../../src/domain/pow.ts'
import { apiKeyId, apiKeySha256, isApiKeyOf, newApiKey } from '../../src/domain/site.ts'
import { proofInput } from '../../src/protocol/proof.ts'
import { clientAddress } from '../../test/harness/proxy-header.ts'
import { randomHex, seededRandom } from '../../test/harness/values.ts'
import { type Case, isText, over, plain, type SyncWork } from './case.ts'
import {
  chargeLog,
  claimsIn,
  DIFFICULTY,
  INPUTS,
  logs,
  NOW_MS,
  nonceFor,
  SITE_KEY,
  scoreFor,
  solutionIn,
  THRESHOLD,
  termsOf,
  tokenFor,
  visits,
} from './inputs.ts'
import * as naive from './naive.ts'
import { REQUEST_CASES } from './requests.ts'

export const PROOF = 'proof check'
/** What node:crypto itself makes of garbage is not the proof check's, so it is measured alone. */
export const ONE_SHOT_HASH = 'proof check, its node:crypto hash alone'

const BODY_CASES: readonly Case[] = [
  {
    name: 'parse a /verify body',
    prepare: () => over(visits(), ({ body }) => solutionIn(body) !== undefined),
    others: plain('JSON.parse, fields checked by hand', () =>
      over(visits(), ({ body }) => naive.solutionOf(body) !== undefined),
    ),
  },
]

const NONCE_CASES: readonly Case[] = [
  {
    // The random bits are given: the service takes them from a pool that it fills 16 KiB at a time.
    name: 'mint a nonce',
    prepare: () =>
      over(visits(), ({ issuedAtMs, randomBits, binding }) =>
        isText(nonceFor(issuedAtMs, randomBits, binding)),
      ),
    others: plain('randomBytes, createHmac over the fields', () =>
      over(visits(), ({ addressText }) => isText(naive.challengeFor(addressText).signature)),
    ),
  },
  {
    name: 'read a nonce',
    prepare: () => over(visits(), ({ nonce, binding }) => termsOf(nonce, binding) !== undefined),
    others: plain('createHmac, timingSafeEqual; cannot tell another address from forged', () => {
      const all = visits().map(({ addressText: ip }) => ({ ip, challenge: naive.challengeFor(ip) }))
      return over(all, ({ ip, challenge }) => naive.isChallenge(challenge, ip))
    }),
  },
]

const PROOF_CASES: readonly Case[] = [
  {
    name: PROOF,
    prepare: () => over(visits(), ({ nonce, counter }) => checkProof(nonce, counter, DIFFICULTY)),
    others: plain('createHash of the text, digest in hex', () =>
      over(visits(), ({ nonce, counter }) => naive.isProof(nonce, counter, DIFFICULTY)),
    ),
  },
  {
    name: ONE_SHOT_HASH,
    prepare: () => {
      const inputs = visits().map(({ nonce, counter }) => Buffer.from(proofInput(nonce, counter)))
      return over(inputs, input => hash('sha256', input, 'binary').length === 32)
    },
  },
]

const JUDGING_CASES: readonly Case[] = [
  {
    name: 'score',
    prepare: () =>
      over(visits(), ({ solution, issuedAtMs }) => scoreFor(solution, issuedAtMs, DIFFICULTY) >= THRESHOLD),
  },
]

const TOKEN_CASES: readonly Case[] = [
  {
    name: 'mint a token',
    prepare: () => over(visits(), ({ claims }) => isText(tokenFor(claims))),
    others: plain('JSON Web Token, HS256; the score can be read by anybody', () =>
      over(visits(), ({ nonce, addressText, claims }) =>
        isText(naive.tokenFor(nonce, addressText, claims.score)),
      ),
    ),
  },
  {
    name: 'read a token',
    prepare: () => over(visits(), ({ token }) => claimsIn(token) !== undefined),
    others: plain('JSON Web Token, HS256', () => {
      const tokens = visits().map(({ nonce, addressText, claims }) =>
        naive.tokenFor(nonce, addressText, claims.score),
      )
      return over(tokens, token => naive.claimsIn(token) !== undefined)
    }),
  },
]

/** As long as what a nonce's address MAC covers. */
const MESSAGE_BYTES = 55
const KEY = Buffer.alloc(32, 7)

function messages(): string[] {
  const random = seededRandom(3)
  return Array.from({ length: INPUTS }, () => randomHex(random, MESSAGE_BYTES))
}

const SIGNING_CASES: readonly Case[] = [
  {
    name: `HMAC of ${MESSAGE_BYTES} bytes`,
    prepare: () => {
      const hmac = new Hmac(KEY, MESSAGE_BYTES)
      return over(messages(), message => {
        hmac.message.write(message, 0, MESSAGE_BYTES, 'latin1')
        return isText(hmac.sign(MESSAGE_BYTES, 'hex'))
      })
    },
    others: plain('createHmac, digest in hex', () =>
      over(messages(), message => isText(createHmac('sha256', KEY).update(message, 'latin1').digest('hex'))),
    ),
  },
]

/** Two requests of the last minute, in order. */
function timeLists(): number[][] {
  const random = seededRandom(13)
  const timeOf = (index: number) => NOW_MS - (2 - index) * 27_500 + (random() % 500)
  return Array.from({ length: INPUTS }, () => [timeOf(0), timeOf(1)])
}

const LIMIT_CASES: readonly Case[] = [
  {
    name: 'sliding window, new visitor',
    prepare: () => over(logs(), record => chargeLog(record).status === 'admitted'),
    others: plain('two lists of times that no other process sees, filtered', () => {
      const pairs = timeLists().map(times => ({ times, ofSite: times.slice(0, 1) }))
      return over(pairs, ({ times, ofSite }) => {
        const address = naive.windowWith(times, NOW_MS, 30)
        return address !== undefined && naive.windowWith(ofSite, NOW_MS, 20) !== undefined
      })
    }),
  },
]

const PROXY = parseAddress('10.0.0.1')!
const TRUSTED = new AddressSet(['10.0.0.0/8', 'fd00::/8'])

function naiveForwarded(): SyncWork {
  const trusted = new BlockList()
  trusted.addSubnet('10.0.0.0', 8, 'ipv4')
  trusted.addSubnet('fd00::', 8, 'ipv6')
  const isTrusted = (hop: string) => trusted.check(hop, isIPv4(hop) ? 'ipv4' : 'ipv6')
  return over(visits(), ({ addressText }) => {
    const hops = addressText.split(',').map(hop => hop.trim())
    return hops.reverse().find(hop => !isTrusted(hop)) === addressText
  })
}

const ADDRESS_CASES: readonly Case[] = [
  {
    name: 'X-Forwarded-For, one proxy',
    prepare: () =>
      over(visits(), ({ addressText, address }) => clientAddress(PROXY, addressText, TRUSTED) === address),
    others: plain('split, trim, net.BlockList', naiveForwarded),
  },
]

function apiKeys() {
  const random = seededRandom(17)
  return Array.from({ length: INPUTS }, () => {
    const key = newApiKey(Buffer.from(randomHex(random, 192), 'hex'))
    const secretSha256 = apiKeySha256(key)
    const record = { id: apiKeyId(key)!, siteKey: SITE_KEY, secretSha256, createdAt: NOW_MS, revokedAt: null }
    return { key, record }
  })
}

const SITE_CASES: readonly Case[] = [
  {
    name: 'API key check',
    prepare: () => over(apiKeys(), ({ key, record }) => isApiKeyOf(record, key)),
    others: plain('createHash, timingSafeEqual (several services hash a password, which takes 100 ms)', () =>
      over(apiKeys(), ({ key, record }) =>
        naive.isSameText(createHash('sha256').update(key).digest('hex'), record.secretSha256),
      ),
    ),
  },
]

export const CASES: readonly Case[] = [
  ...REQUEST_CASES,
  ...BODY_CASES,
  ...NONCE_CASES,
  ...PROOF_CASES,
  ...JUDGING_CASES,
  ...TOKEN_CASES,
  ...SIGNING_CASES,
  ...LIMIT_CASES,
  ...ADDRESS_CASES,
  ...SITE_CASES,
]

/** Every case: the whole requests first, then their steps in the order of the path. */

import { createHash, createHmac, hash } from 'node:crypto'
import { BlockList, isIPv4 } from 'node:net'
import { AddressSet, parseAddress } from '../../src/domain/address.ts'
import { difficultyFor } from '../../src/domain/difficulty.ts'
import { FingerprintWatch } from '../../src/domain/fingerprints.ts'
import { Hmac } from '../../src/domain/hmac.ts'
import { equalInConstantTime } from '../../src/domain/keyring.ts'
import { admitToWindow } from '../../src/domain/limits.ts'
import { checkProof } from '../../src/domain/pow.ts'
import { apiKeyId, apiKeySha256, isApiKeyOf, newApiKey } from '../../src/domain/site.ts'
import { NEW_SOURCE, SourceWatch } from '../../src/domain/sources.ts'
import { proofInput } from '../../src/protocol/proof.ts'
import { clientAddress } from '../../test/harness/proxy-header.ts'
import { randomHex, seededRandom } from '../../test/harness/values.ts'
import { type Case, isText, over, plain, type SyncWork } from './case.ts'
import {
  addressKeyOf,
  chargeLog,
  claimsIn,
  DIFFICULTY,
  INPUTS,
  logOf,
  NOW_MS,
  nonceFor,
  redemptionBodies,
  redemptionIn,
  SITE_KEY,
  SITE_TAG,
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
  {
    name: 'parse a /verify-token body',
    prepare: () => over(redemptionBodies(), body => redemptionIn(body) !== undefined),
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
  {
    name: 'difficulty',
    prepare: () => {
      const random = seededRandom(5)
      const inputs = Array.from({ length: INPUTS }, () => ({
        addressChallenges: random() % 30,
        addressLimit: 30,
        addressFailures: random() % 8,
        source: NEW_SOURCE,
        siteRate: random() % 100,
        siteRateUsual: random() % 20,
      }))
      const bounds = { base: 18, min: 16, max: 28 }
      return over(inputs, input => difficultyFor(bounds, input) >= bounds.min)
    },
  },
  {
    name: 'a source',
    prepare: () => {
      const watch = new SourceWatch(2, 1)
      return over(visits(), ({ address }) => {
        watch.accepted(address, NOW_MS)
        return watch.of(address, NOW_MS).networkBits >= 0
      })
    },
  },
  {
    name: 'note a fingerprint',
    prepare: () => {
      const watch = new FingerprintWatch(2, 1)
      const all = visits().map(({ solution, address }) => ({
        fingerprint: solution.fingerprintHash,
        network: addressKeyOf(address),
      }))
      return over(all, ({ fingerprint, network }) => watch.note(SITE_TAG, fingerprint, network, NOW_MS) >= 1)
    },
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
/** Of a token's HMAC. */
const HMAC_CHARACTERS = 43

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
  {
    name: 'constant-time comparison',
    prepare: () => {
      // A token's HMAC and an equal text in memory of its own.
      const hmacs = visits().map(({ token }) => Buffer.from(token.slice(-HMAC_CHARACTERS)))
      const pairs = hmacs.map(bytes => ({ a: bytes.toString('latin1'), b: bytes.toString('latin1') }))
      return over(pairs, ({ a, b }) => equalInConstantTime(a, b, HMAC_CHARACTERS))
    },
  },
]

const ADDRESS_LIMIT = 30
const [KEY_LIMIT, KEY_REQUESTS] = [200, 100]

/** @param length requests of the last minute */
function logWork(length: number, isAdmitted: boolean): SyncWork {
  const random = seededRandom(11)
  const records = Array.from({ length: INPUTS }, () => logOf(length, random))
  return over(records, record => chargeLog(record).admitted === isAdmitted)
}

/** Times in order, over most of the last minute. */
function timeLists(length: number): number[][] {
  const random = seededRandom(13)
  const timeOf = (index: number) => NOW_MS - Math.floor(((length - index) * 55_000) / length)
  return Array.from({ length: INPUTS }, () =>
    Array.from({ length }, (_, index) => timeOf(index) + (random() % 500)),
  )
}

function windowOf(times: readonly number[]): Buffer {
  let record: Buffer | undefined
  for (const time of times) {
    const decision = admitToWindow(record, time, KEY_LIMIT, 'api-key')
    if (!decision.admitted) throw new Error('the window refuses what fits')
    record = Buffer.from(decision.record)
  }
  return record!
}

const LIMIT_CASES: readonly Case[] = [
  {
    name: 'sliding window, new visitor',
    prepare: () => logWork(2, true),
    others: plain('two lists of times that no other process sees, filtered', () => {
      const pairs = timeLists(2).map(times => ({ times, ofSite: times.slice(0, 1) }))
      return over(pairs, ({ times, ofSite }) => {
        const address = naive.windowWith(times, NOW_MS, ADDRESS_LIMIT)
        return address !== undefined && naive.windowWith(ofSite, NOW_MS, 20) !== undefined
      })
    }),
  },
  { name: 'sliding window, last of 30', prepare: () => logWork(ADDRESS_LIMIT - 1, true) },
  { name: 'sliding window, refused', prepare: () => logWork(ADDRESS_LIMIT, false) },
  {
    name: `sliding window, API key at ${KEY_REQUESTS} of ${KEY_LIMIT}`,
    prepare: () =>
      over(
        timeLists(KEY_REQUESTS).map(windowOf),
        record => admitToWindow(record, NOW_MS, KEY_LIMIT, 'api-key').admitted,
      ),
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
    name: 'parse an address',
    prepare: () => over(visits(), ({ addressText, address }) => parseAddress(addressText) === address),
  },
  { name: 'limit key', prepare: () => over(visits(), ({ address }) => isText(addressKeyOf(address))) },
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

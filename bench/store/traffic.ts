/**
 * Store operations as the endpoints call them, built ahead of time: visitors get a challenge, submit a solution, and have
 * their token redeemed. Nonces are minted as the service mints them, because a store may parse them.
 */

import { parseAddress } from '../../src/addresses/address.ts'
import { AddressTags } from '../../src/domain/address-tags.ts'
import { CONTRACT_LIMITS } from '../../src/domain/endpoint.ts'
import { Keyring } from '../../src/domain/keyring.ts'
import { mintNonce } from '../../src/domain/nonce.ts'
import { siteFree } from '../../src/domain/price.ts'
import { networkPricing, PRICING } from '../../src/domain/pricing.ts'
import { compileSite, SITE_DEFAULTS, type Site } from '../../src/domain/site.ts'
import type {
  ChallengeRequest,
  Metering,
  RedemptionRequest,
  RequestStore,
  SolutionRequest,
} from '../../src/store/store.ts'
import { ADDRESSES_MAX, visitorAddress } from '../../test/harness/load/addresses.ts'

/** They are in the order of a visit. */
export const OPERATIONS = ['challenge', 'verification', 'redemption'] as const
export type Operation = (typeof OPERATIONS)[number]

/** The same index in each is the same visit. */
export interface Visits {
  readonly challenge: readonly ChallengeRequest[]
  readonly verification: readonly SolutionRequest[]
  readonly redemption: readonly RedemptionRequest[]
}

/** Backends are few, and so are customers beside visitors. */
const CALLERS = 8
const API_KEYS = 32
/** What the settings allow at most: a service at full load redeems far more for one caller than the contract allows. */
const UNLIMITED = 1_000_000
/** Defaults of the settings. */
const [CHALLENGE_LIFETIME_MS, TOKEN_LIFETIME_MS] = [120_000, 300_000]
const DIFFICULTY = 18
/** Visitors need some time to solve: challenges were issued within the last ten seconds. */
const ISSUED_WITHIN_MS = 10_000
const IPV6_PREFIX_BITS = 64

/** Two, because an address has a limit for each site and one for all. */
export const SITES: readonly Site[] = ['site_0123456789ABCDEFabcdef', 'site_fedcbaFEDCBA9876543210'].map(
  siteKey => compileSite({ ...SITE_DEFAULTS, siteKey, createdAt: 0, updatedAt: 0 }),
)

const keyring = new Keyring(['a secret for the bench, long enough to be accepted'])
const tags = new AddressTags(keyring.signing)

/** One visit for each of `count` addresses, the first of them being number `first`; present time is the clock's. */
export function buildVisits(store: RequestStore, first: number, count: number, nowMs = Date.now()): Visits {
  if (first + count > ADDRESSES_MAX) throw new RangeError(`more than ${ADDRESSES_MAX} addresses`)
  const indexes = Array.from({ length: count }, (_, offset) => first + offset)
  const [site] = SITES as [Site]
  const verification = indexes.map(index =>
    solutionRequest(store, index, site, nowMs - (index % ISSUED_WITHIN_MS)),
  )
  return {
    challenge: indexes.map(index => challengeRequest(index, site)),
    verification,
    redemption: verification.map((solution, offset) => redemptionRequest(store, first + offset, solution)),
  }
}

export function challengeRequest(index: number, site: Site): ChallengeRequest {
  return {
    addressKey: addressKeyOf(index),
    siteTag: site.logTag,
    addressLimit: CONTRACT_LIMITS.challengeAddress,
    siteLimit: CONTRACT_LIMITS.challengeAddressSite,
    metering: meteringOf(index, site),
  }
}

/** A verification that spends its nonce, one of its own for each index, site and issue time. */
export function solutionRequest(
  store: RequestStore,
  index: number,
  site: Site,
  issuedAtMs: number,
): SolutionRequest {
  const addressKey = addressKeyOf(index)
  const storeEpoch = store.epochOf(addressKey)
  if (storeEpoch === undefined) throw new Error('the store was never reached')
  const terms = { issuedAtMs, difficulty: DIFFICULTY }
  const lifetimes = { challengeLifetimeMs: CHALLENGE_LIFETIME_MS, tokenLifetimeMs: TOKEN_LIFETIME_MS }
  const binding = { siteKey: site.record.siteKey, storeEpoch, lifetimes, address: addressOf(index) }
  // Address and issue time already tell nonces apart; these bits only have to be as varied as random ones.
  const randomBits = Math.imul(index, 0x9e3779b1) & 0x3fff
  return {
    addressKey,
    siteTag: site.logTag,
    addressLimit: CONTRACT_LIMITS.verifyAddress,
    siteLimit: CONTRACT_LIMITS.verifyAddressSite,
    metering: meteringOf(index, site),
    failed: false,
    spend: {
      nonce: mintNonce(keyring, terms, binding, randomBits),
      storeEpoch,
      expiresAtMs: issuedAtMs + CHALLENGE_LIFETIME_MS,
    },
  }
}

function redemptionRequest(
  store: RequestStore,
  index: number,
  { spend }: SolutionRequest,
): RedemptionRequest {
  const { siteKey } = SITES[0]!.record
  return {
    callerKey: addressKeyOf(ADDRESSES_MAX - 1 - (index % CALLERS)),
    callerLimit: UNLIMITED,
    apiKey: { id: `benchk${String(index % API_KEYS).padStart(2, '0')}`, limit: UNLIMITED, siteKey },
    redeem: {
      nonce: spend!.nonce,
      storeEpoch: store.epochOf(siteKey)!,
      expiresAtMs: spend!.expiresAtMs + TOKEN_LIFETIME_MS,
      claim: '',
    },
  }
}

function addressKeyOf(index: number): string {
  return tags.keyOf(addressOf(index), IPV6_PREFIX_BITS)
}

function addressOf(index: number): string {
  return parseAddress(visitorAddress(index))!
}

/** The 0 means that the operator expects no rate of the site. */
function meteringOf(index: number, site: Site): Metering {
  const address = addressOf(index)
  const { owner, wide } = networkPricing(address, PRICING).free
  return {
    firstProofs: tags.firstProofNames,
    meters: [site.meterName, ...tags.networkMeters(address, addressKeyOf(index), 'sha256')],
    free: [siteFree(0, PRICING), owner, wide],
    counts: true,
  }
}

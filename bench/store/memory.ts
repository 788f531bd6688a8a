/** Measures the store's memory for an address: with one visit, and at all limits of the contract. */

import { CONTRACT_LIMITS } from '../../src/domain/limits.ts'
import type { RequestStore } from '../../src/store/store.ts'
import type { StoreKind } from '../../test/harness/service.ts'
import { drive, driveAll } from './drive.ts'
import type { Run } from './figures.ts'
import { withSubject } from './open-subject.ts'
import type { Options } from './options.ts'
import type { Subject } from './subject.ts'
import {
  buildVisits,
  challengeRequest,
  OPERATIONS,
  type Operation,
  SITES,
  solutionRequest,
  type Visits,
} from './traffic.ts'

export const TYPICAL = 'one challenge, one verification'
export const AT_LIMITS = 'at all limits'

const TYPICAL_ADDRESSES = 100_000
const AT_LIMITS_ADDRESSES = 2000
/** Numbered apart, so that what a store makes room for once is not counted. */
const WARM_UP_VISITS = 500
/** Requests are built this many at a time, so that they take little memory beside the store's. */
const CHUNK = 20_000
const FILL_BATCH = 128

/** One repetition, each state on a fresh store. */
export async function runMemory(store: StoreKind, options: Options): Promise<Run[]> {
  const typical = Math.min(TYPICAL_ADDRESSES, options.maxAddresses)
  const atLimits = Math.min(AT_LIMITS_ADDRESSES, options.maxAddresses)
  return [
    await withSubject(store, subject =>
      filled(store, subject, TYPICAL, typical, () => fillTypical(subject.store, WARM_UP_VISITS, typical)),
    ),
    await runAtLimits(store, atLimits),
  ]
}

/** The clock is virtual, so that a minute's requests take seconds; Redis itself keeps keys by its own clock. */
function runAtLimits(store: StoreKind, addresses: number): Promise<Run> {
  const clock = { nowMs: Date.now() - MINUTE_MS }
  const options = { clock: () => clock.nowMs }
  return withSubject(
    store,
    subject =>
      filled(store, subject, AT_LIMITS, addresses, () => fillToLimits(subject.store, clock, addresses)),
    options,
  )
}

async function filled(
  store: StoreKind,
  subject: Subject,
  state: string,
  addresses: number,
  fill: () => Promise<void>,
): Promise<Run> {
  await driveAll(subject.store, buildVisits(subject.store, 0, WARM_UP_VISITS), FILL_BATCH, VISITED)
  const [bytes, keys] = [await subject.stateBytes(), await subject.stateKeys()]
  await fill()
  const [moreBytes, moreKeys] = [(await subject.stateBytes()) - bytes, (await subject.stateKeys()) - keys]
  const sample = { bytesPerAddress: moreBytes / addresses, keysPerAddress: moreKeys / addresses }
  return { row: { part: 'memory', store, of: state, addresses }, sample }
}

/** Tokens are redeemed by others, who are few. */
const VISITED: readonly Operation[] = OPERATIONS.filter(name => name !== 'redemption')

/** One challenge and one verification of each address, of number `first` and those that follow. */
export async function fillTypical(store: RequestStore, first: number, addresses: number): Promise<void> {
  for (let from = 0; from < addresses; from += CHUNK) {
    const count = Math.min(CHUNK, addresses - from)
    await driveAll(store, buildVisits(store, first + from, count), FILL_BATCH, VISITED)
  }
}

const MINUTE_MS = 60_000

/**
 * All that the contract lets an address do in a minute, evenly spread: challenges for two sites in turn, and
 * verifications of which the first site gets as many as one site may.
 */
async function fillToLimits(store: RequestStore, clock: { nowMs: number }, addresses: number): Promise<void> {
  const { challengeAddress, verifyAddress, verifyAddressSite } = CONTRACT_LIMITS
  const indexes = Array.from({ length: addresses }, (_, index) => WARM_UP_VISITS + index)
  const stepMs = Math.floor(MINUTE_MS / (challengeAddress + 1))
  const challengesPerVerification = challengeAddress / verifyAddress
  for (let step = 0; step < challengeAddress; step++) {
    clock.nowMs += stepMs
    const challenge = indexes.map(index => challengeRequest(index, SITES[step % SITES.length]!))
    await drive(store, 'challenge', { ...NO_VISITS, challenge }, FILL_BATCH)
    if (step % challengesPerVerification !== 0) continue
    const verified = step / challengesPerVerification
    const site = SITES[verified < verifyAddressSite ? 0 : 1]!
    const verification = indexes.map(index => solutionRequest(store, index, site, clock.nowMs))
    await drive(store, 'verification', { ...NO_VISITS, verification }, FILL_BATCH)
  }
}

const NO_VISITS: Visits = { challenge: [], verification: [], redemption: [] }

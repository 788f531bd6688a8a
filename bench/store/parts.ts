/** The parts of the bench: what operations cost; memory; and growth with the addresses. */

import { CONTRACT_LIMITS } from '../../src/domain/endpoint.ts'
import type { RequestStore } from '../../src/store/store.ts'
import { tell } from '../../test/harness/command-line.ts'
import type { StoreKind } from '../../test/harness/service.ts'
import { meanOf } from '../report/report.ts'
import { checkKept, collectGarbage, drive, driveAll, HOLLOW_STORE } from './drive.ts'
import { startEmbedded } from './embedded.ts'
import type { FigureName, Run, Sample, Subject, SubjectOptions } from './figures.ts'
import { measureBesideOthers } from './figures.ts'
import { startRedis } from './redis.ts'
import type { Operation, Visits } from './traffic.ts'
import { buildVisits, challengeRequest, OPERATIONS, SITES, solutionRequest } from './traffic.ts'

export interface Sizes {
  /** How many of each kind are in a measured pass. */
  readonly operations: number
  /** Operations in one tick of the event loop. */
  readonly batch: number
  readonly maxAddresses: number
}

async function withSubject<Result>(
  kind: StoreKind,
  use: (subject: Subject) => Promise<Result>,
  options: SubjectOptions = {},
): Promise<Result> {
  const subject = await (kind === 'redis' ? startRedis(options) : startEmbedded(options))
  try {
    return await use(subject)
  } finally {
    await subject.stop()
  }
}

/** So many visits a store answers before its CPU time is measured, so that V8 has compiled the store process; fewer in a test's small run. */
const warmUpVisits = ({ operations }: Sizes) => Math.min(50_000, 3 * operations)
/** After so many visits V8 has compiled this process' own code. */
const COMPILING_VISITS = 10_000

/** Has this process' own code compiled, that of this store's client included, before all parts; the store is thrown away. */
export function warmUp(store: StoreKind, sizes: Sizes): Promise<void> {
  return withSubject(store, async subject => {
    const visits = buildVisits(subject.store, 0, Math.min(COMPILING_VISITS, sizes.operations))
    await driveAll(HOLLOW_STORE, visits, sizes.batch)
    await driveAll(subject.store, visits, sizes.batch)
  })
}

/** One repetition on a fresh store: a row for each kind of operation, in the order of a visit. */
function runCosts(store: StoreKind, sizes: Sizes): Promise<Run[]> {
  const { operations, batch } = sizes
  return withSubject(store, async subject => {
    const runs: Run[] = []
    const first = warmUpVisits(sizes)
    await driveAll(subject.store, buildVisits(subject.store, 0, first), batch)
    const visits = buildVisits(subject.store, first, operations)
    for (const operation of OPERATIONS) {
      collectGarbage()
      // A store that does nothing shows what the bench itself costs.
      const driver = await drive(HOLLOW_STORE, operation, visits, batch)
      const driverUs = (driver.cpuMs / driver.operations) * 1000
      const sample = await measureBesideOthers(subject, () => drive(subject.store, operation, visits, batch))
      runs.push({ row: { part: 'costs', store, about: operation, batch }, sample: { ...sample, driverUs } })
    }
    await checkKept(subject.store, visits)
    return runs
  })
}

export const TYPICAL = 'one challenge, one verification'
export const AT_LIMITS = 'at all limits'

const TYPICAL_ADDRESSES = 100_000
const AT_LIMITS_ADDRESSES = 2000
/** An address at all limits makes about as many requests as this many typical ones, so a small run has that many fewer of them. */
const AT_LIMITS_COST = 50
/** Made before the count begins, by addresses of their own, so that what a store makes room for once is not counted. */
const FIRST_VISITS = 500
/** Requests are built this many at a time, so that they take little memory beside the store's. */
const CHUNK = 20_000
/** Operations in a tick while a store is filled, which is not measured: more than --batch, to be done sooner. */
const FILL_BATCH = 128
const MINUTE_MS = 60_000
/** Not redemptions: tokens are redeemed by callers, who are few, and whose number does not grow with the visitors'. */
const BY_VISITORS: readonly Operation[] = OPERATIONS.filter(name => name !== 'redemption')
const NO_VISITS: Visits = { challenge: [], verification: [], redemption: [] }

/** One repetition, each state on a fresh store. At the limits the clock is virtual, so that a minute's requests take seconds. */
async function runMemory(store: StoreKind, { maxAddresses }: Sizes): Promise<Run[]> {
  const typical = Math.min(TYPICAL_ADDRESSES, maxAddresses)
  const atLimits = Math.min(AT_LIMITS_ADDRESSES, Math.ceil(maxAddresses / AT_LIMITS_COST))
  const clock = { nowMs: Date.now() - MINUTE_MS } // fillToLimits moves it on by a minute, to about now
  return [
    await filled(store, TYPICAL, typical, filling => fillTypical(filling, FIRST_VISITS, typical)),
    await filled(store, AT_LIMITS, atLimits, filling => fillToLimits(filling, clock, atLimits), {
      clock: () => clock.nowMs,
    }),
  ]
}

function filled(
  store: StoreKind,
  state: string,
  addresses: number,
  fill: (store: RequestStore) => Promise<void>,
  options: SubjectOptions = {},
): Promise<Run> {
  const measure = async (subject: Subject) => {
    await driveAll(subject.store, buildVisits(subject.store, 0, FIRST_VISITS), FILL_BATCH, BY_VISITORS)
    const [bytes, keys] = [await subject.stateBytes(), await subject.stateKeys()]
    await fill(subject.store)
    const [moreBytes, moreKeys] = [(await subject.stateBytes()) - bytes, (await subject.stateKeys()) - keys]
    const sample = { bytesPerAddress: moreBytes / addresses, keysPerAddress: moreKeys / addresses }
    return { row: { part: 'memory' as const, store, about: state, addresses }, sample }
  }
  return withSubject(store, measure, options)
}

/** One challenge and one verification of each address, of number `first` and those that follow. */
async function fillTypical(store: RequestStore, first: number, addresses: number, now = Date.now) {
  for (let from = 0; from < addresses; from += CHUNK) {
    const count = Math.min(CHUNK, addresses - from)
    await driveAll(store, buildVisits(store, first + from, count, now()), FILL_BATCH, BY_VISITORS)
  }
}

/**
 * All requests that the contract allows an address in a minute, evenly spread: challenges for two sites in turn, and
 * verifications. The first site gets the most verifications that a site may get, the second the rest, which are fewer.
 */
async function fillToLimits(store: RequestStore, clock: { nowMs: number }, addresses: number): Promise<void> {
  const { challengeAddress, verifyAddress, verifyAddressSite } = CONTRACT_LIMITS
  const indexes = Array.from({ length: addresses }, (_, index) => FIRST_VISITS + index)
  const stepMs = Math.floor(MINUTE_MS / (challengeAddress + 1))
  const challengesPerVerification = challengeAddress / verifyAddress
  if (!Number.isInteger(challengesPerVerification)) throw new Error('a verification would be left out')
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

const ADDRESSES = [1000, 10_000, 100_000, 1_000_000] as const
/** With few addresses a pass is short, so it is repeated on fresh stores until all passes have --operations, but so often at most. */
const ROUNDS_MAX = 10
/** After so long, an address' log is empty and its challenges have expired. */
const FORGOTTEN_MS = 600_000

/** What must not grow: CPU time, and the time for which the store can do nothing else. */
const COMPARED: Readonly<Record<StoreKind, { readonly cpu: FigureName; readonly time: FigureName }>> = {
  redis: { cpu: 'redisUs', time: 'scriptUs' },
  embedded: { cpu: 'storeUs', time: 'wallUs' },
}

/** One repetition, each size on fresh stores. What is measured are the last of the addresses, which are new. */
async function runGrowth(store: StoreKind, sizes: Sizes): Promise<Run[]> {
  const runs: Run[] = []
  const { cpu, time } = COMPARED[store]
  const atFewest = new Map<Operation, Sample>()
  for (const addresses of ADDRESSES.filter(size => size <= sizes.maxAddresses)) {
    const measured = Math.min(sizes.operations, addresses / 2)
    const rounds: Map<Operation, Sample>[] = []
    while (rounds.length < Math.min(ROUNDS_MAX, Math.ceil(sizes.operations / measured)))
      rounds.push(await runRound(store, addresses, measured, sizes))
    for (const operation of BY_VISITORS) {
      const sample = meanSample(rounds.map(samples => samples.get(operation)!))
      if (!atFewest.has(operation)) atFewest.set(operation, sample)
      const overFewest = (name: FigureName) => sample[name]! / atFewest.get(operation)![name]!
      const compared = { cpuOverFewest: overFewest(cpu), timeOverFewest: overFewest(time) }
      const row = { part: 'growth', store, about: operation, batch: sizes.batch, addresses } as const
      runs.push({ row, sample: { ...sample, ...compared } })
    }
    tell(`growth, ${store}: ${addresses.toLocaleString('en')} addresses`)
  }
  return runs
}

/** Fills a fresh store with all but `measured` of the addresses. @returns what the operations of these cost then */
function runRound(store: StoreKind, addresses: number, measured: number, sizes: Sizes) {
  const filled = addresses - measured
  // Too few addresses do not warm a store process up, so they come again after a leap of the clock; Redis is compiled.
  const fills = store === 'embedded' ? Math.ceil(warmUpVisits(sizes) / filled) : 1
  let leapMs = 0
  const clock = () => Date.now() + leapMs
  const use = async (subject: Subject) => {
    for (let fill = 0; fill < fills; fill++) {
      leapMs = fill * FORGOTTEN_MS
      await fillTypical(subject.store, 0, filled, clock)
    }
    const visits = buildVisits(subject.store, filled, measured, clock())
    const samples = new Map<Operation, Sample>()
    for (const operation of BY_VISITORS) {
      const pass = () => drive(subject.store, operation, visits, sizes.batch)
      samples.set(operation, await measureBesideOthers(subject, pass))
    }
    return samples
  }
  return withSubject(store, use, store === 'embedded' ? { clock } : {})
}

function meanSample(samples: readonly Sample[]): Sample {
  const names = Object.keys(samples[0]!) as FigureName[]
  return Object.fromEntries(names.map(name => [name, meanOf(samples.map(sample => sample[name]!))]))
}

export const RUNNERS = { costs: runCosts, memory: runMemory, growth: runGrowth }

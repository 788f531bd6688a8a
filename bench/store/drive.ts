/**
 * Drives a store as an event loop under load does: each tick asks for a batch of operations at once, and batches follow each other
 * without a pause.
 *
 *   loop   | batch 1: ask, ask, ... | batch 2: ask, ask, ... | answers of batch 1 | batch 3: ask, ask, ... |
 *   store                           | call of batch 1        | call of batch 2    |
 */

import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type { RequestStore } from '../../src/store/store.ts'
import { OPERATIONS, type Operation, type Visits } from './traffic.ts'

export interface Drive {
  readonly operations: number
  readonly elapsedMs: number
  /** CPU time of this process, driver and store client together. */
  readonly cpuMs: number
  /** The longest time from a batch's first question to its last answer. */
  readonly longestBatchMs: number
}

/** While a server works on one batch the next is already on its way, so that it never waits for the driver. */
const BATCHES_UNDER_WAY = 2

/** Sends all requests of one kind, each once. Rejects if any answer is not the one that a new visitor gets. @param batch how many at once */
export function drive(store: RequestStore, operation: Operation, visits: Visits, batch: number) {
  const count = visits[operation].length
  const ask = ASKS[operation]
  let [next, answered, underWay, longestBatchMs] = [0, 0, 0, 0]
  let isPumping = false
  return new Promise<Drive>((resolve, reject) => {
    const startedAtMs = performance.now()
    const cpuBefore = process.cpuUsage()
    const startBatch = () => {
      const end = Math.min(count, next + batch)
      let rest = end - next
      const askedAtMs = performance.now()
      underWay++
      const done = (answer: unknown, isExpected: boolean) => {
        if (!isExpected) reject(new Error(`a ${operation} was answered ${JSON.stringify(answer)}`))
        answered++
        if (--rest > 0) return
        underWay--
        longestBatchMs = Math.max(longestBatchMs, performance.now() - askedAtMs)
        if (answered === count) finish()
        else if (!isPumping) startPumping()
      }
      while (next < end) ask(store, visits, next++, done)
    }
    // At most one batch is started in a tick of the event loop: the store would make one call of two.
    const pump = () => {
      isPumping = next < count && underWay < BATCHES_UNDER_WAY
      if (!isPumping) return
      startBatch()
      setImmediate(pump)
    }
    const startPumping = () => {
      isPumping = true
      setImmediate(pump)
    }
    const finish = () => {
      const { user, system } = process.cpuUsage(cpuBefore)
      const elapsedMs = performance.now() - startedAtMs
      resolve({ operations: count, elapsedMs, cpuMs: (user + system) / 1000, longestBatchMs })
    }
    startPumping()
  })
}

type Ask = (
  store: RequestStore,
  visits: Visits,
  index: number,
  done: (answer: unknown, isExpected: boolean) => void,
) => void

const ASKS: Readonly<Record<Operation, Ask>> = {
  challenge: (store, visits, index, done) =>
    store.admitChallenge(visits.challenge[index]!, answer => done(answer, answer.status === 'admitted')),
  verification: (store, visits, index, done) =>
    store.admitSolution(visits.verification[index]!, answer =>
      done(answer, answer.status === 'admitted' && answer.nonce === 'spent'),
    ),
  redemption: (store, visits, index, done) =>
    store.redeemToken(visits.redemption[index]!, answer =>
      done(answer, answer.status === 'admitted' && answer.token === 'redeemed'),
    ),
}

setFlagsFromString('--expose-gc')
/** Is called before a pass whose CPU time counts: the garbage of building its requests would be collected within it. */
export const collectGarbage: () => void = runInNewContext('gc')

/** Sends whole visits: all challenges, then all verifications, then all redemptions. */
export async function driveAll(
  store: RequestStore,
  visits: Visits,
  batch: number,
  operations: readonly Operation[] = OPERATIONS,
): Promise<void> {
  for (const operation of operations) await drive(store, operation, visits, batch)
}

/** Throws unless the store refuses what the first visit already spent: what was measured must have been kept. */
export async function checkKept(store: RequestStore, visits: Visits): Promise<void> {
  const again = (operation: Operation) =>
    new Promise<unknown>(resolve => ASKS[operation](store, visits, 0, resolve))
  const answers = [await again('verification'), await again('redemption')]
  const isKept = answers.every(answer => Object.values(answer as object).includes('used'))
  if (!isKept) throw new Error(`what was spent before was answered ${JSON.stringify(answers)}`)
}

const NOTHING = { failures: 0, accepted: 0, meters: undefined }

/** Answers in the next tick and does nothing: what is left is the driver's own cost. */
export const HOLLOW_STORE: RequestStore = {
  admitChallenge: (_, done) => answerLater(() => done({ status: 'admitted', siteCount: 0, ...NOTHING })),
  admitSolution: (_, done) => answerLater(() => done({ status: 'admitted', nonce: 'spent', ...NOTHING })),
  takeBack: () => {},
  redeemToken: (_, done) => answerLater(() => done({ status: 'admitted', token: 'redeemed' })),
  epochOf: () => 0,
  nonceEpoch: () => 0,
  nonceEpochs: () => [],
  formerNonceEpochs: () => [],
  awayMs: () => 0,
}

let later: (() => void)[] = []

function answerLater(answer: () => void): void {
  if (later.length === 0) {
    setImmediate(() => {
      const answers = later
      later = []
      for (const give of answers) give()
    })
  }
  later.push(answer)
}

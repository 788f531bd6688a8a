/** src/domain/limits.ts: one request against records that live in memory. */

import { admitToWindow } from '../../../src/domain/limits.ts'
import type { Case, SyncWork } from '../case.ts'
import { chargeLog, INPUTS, logOf, NOW_MS } from '../inputs.ts'
import { naiveWindow } from '../naive.ts'
import { seededRandom } from '../random.ts'

const SOURCE = { area: 'domain/limits', source: 'src/domain/limits.ts' }
const LOG_LIMIT = 30
const SITE_LIMIT = 20
const KEY_LIMIT = 200
const KEY_REQUESTS = 100
const NAIVE_LOG_NOTE = 'two lists of times that no other process sees, filtered'

/** @param length requests of the last minute */
function logWork(length: number, isAdmitted: boolean): SyncWork {
  const random = seededRandom(11)
  const records = Array.from({ length: INPUTS }, () => logOf(length, random))
  const step = (index: number) => (chargeLog(records[index]!).admitted === isAdmitted ? 1 : 0)
  return { kind: 'sync', count: INPUTS, step }
}

/** The address's times, and those of one site of three. */
function naiveLogWork(length: number, isAdmitted: boolean): SyncWork {
  const times = () => timeLists(length)
  const ofAddress = times()
  const ofSite = times().map(list => list.filter((_, index) => index % 3 === 0))
  const step = (index: number) => {
    const address = naiveWindow(ofAddress[index]!, NOW_MS, LOG_LIMIT)
    const site = address && naiveWindow(ofSite[index]!, NOW_MS, SITE_LIMIT)
    return (site !== undefined) === isAdmitted ? 1 : 0
  }
  return { kind: 'sync', count: INPUTS, step }
}

/** Times in order, over most of the last minute. */
function timeLists(length: number): number[][] {
  const random = seededRandom(13)
  return Array.from({ length: INPUTS }, () =>
    Array.from(
      { length },
      (_, index) => NOW_MS - Math.floor(((length - index) * 55_000) / length) + (random() % 500),
    ),
  )
}

export const LIMIT_CASES: readonly Case[] = [
  {
    name: 'sliding window, new visitor',
    ...SOURCE,
    step: () => logWork(2, true),
    naive: () => naiveLogWork(2, true),
    naiveNote: NAIVE_LOG_NOTE,
  },
  {
    name: 'sliding window, last of 30',
    ...SOURCE,
    step: () => logWork(LOG_LIMIT - 1, true),
    naive: () => naiveLogWork(LOG_LIMIT - 1, true),
    naiveNote: NAIVE_LOG_NOTE,
  },
  {
    name: 'sliding window, refused',
    ...SOURCE,
    step: () => logWork(LOG_LIMIT, false),
    naive: () => naiveLogWork(LOG_LIMIT, false),
    naiveNote: `${NAIVE_LOG_NOTE}; does not say for how long`,
  },
  {
    name: `sliding window, API key at ${KEY_REQUESTS} of ${KEY_LIMIT}`,
    ...SOURCE,
    step: () => {
      const records = timeLists(KEY_REQUESTS).map(windowOf)
      const step = (index: number) =>
        admitToWindow(records[index]!, NOW_MS, KEY_LIMIT, 'api-key').admitted ? 1 : 0
      return { kind: 'sync', count: INPUTS, step }
    },
    naive: () => {
      const lists = timeLists(KEY_REQUESTS)
      const step = (index: number) => (naiveWindow(lists[index]!, NOW_MS, KEY_LIMIT) === undefined ? 0 : 1)
      return { kind: 'sync', count: INPUTS, step }
    },
    naiveNote: 'a list of times that no other process sees, filtered',
  },
]

function windowOf(times: readonly number[]): Buffer {
  let record: Buffer | undefined
  for (const time of times) {
    const decision = admitToWindow(record, time, KEY_LIMIT, 'api-key')
    if (!decision.admitted) throw new Error('the window refuses what fits')
    record = Buffer.from(decision.record)
  }
  return record!
}

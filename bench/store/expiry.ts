/** Measures the cost of expiry, which a service at a steady rate pays for each request. */

import type { StoreKind } from '../../test/harness/service.ts'
import { driveAll } from './drive.ts'
import type { Run } from './figures.ts'
import { withSubject } from './open-subject.ts'
import type { Options } from './options.ts'
import { buildVisits } from './traffic.ts'

const SPREAD = 'one after another'
const AT_ONCE = 'all at once'
/** More keys could not be given shorter lives in time. */
const VISITS_MAX = 50_000
const FILL_BATCH = 128

/** One repetition, each way of expiring on a fresh store. LMDB's records are swept in one way only. */
export async function runExpiry(store: StoreKind, options: Options): Promise<Run[]> {
  const visits = Math.min(VISITS_MAX, options.operations)
  const runs: Run[] = []
  for (const of of store === 'redis' ? [SPREAD, AT_ONCE] : [AT_ONCE]) {
    const sample = await withSubject(
      store,
      async subject => {
        await driveAll(subject.store, buildVisits(subject.store, 0, visits), FILL_BATCH)
        return await subject.expired(of === SPREAD)
      },
      store === 'redis' ? {} : { clock: Date.now, sweeps: true },
    )
    const keysPerAddress = sample.keys! / visits
    runs.push({
      row: { part: 'expiry', store, of, addresses: visits },
      sample: { ...sample, keysPerAddress },
    })
  }
  return runs
}

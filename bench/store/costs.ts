/** Measures the cost of each kind of operation on new addresses, with one or several batch sizes. */

import type { StoreKind } from '../../test/harness/service.ts'
import { checkKept, collectGarbage, drive, driveAll, HOLLOW_STORE } from './drive.ts'
import type { Run } from './figures.ts'
import { withSubject } from './open-subject.ts'
import type { Options, Part } from './options.ts'
import { besideOthers } from './subject.ts'
import { buildVisits, OPERATIONS } from './traffic.ts'

export const SWEPT_BATCHES = [1, 8, 32, 128] as const

/** Each store has answered this many visits before anything is measured: tables have a size, scripts are loaded. */
const WARM_UP_VISITS = 2000
/** And this process has made this many of each store, so that its code is compiled. */
const COMPILING_VISITS = 10_000

export function warmUp(store: StoreKind, options: Options): Promise<void> {
  return withSubject(store, async subject => {
    const visits = buildVisits(subject.store, 0, Math.min(COMPILING_VISITS, options.operations))
    await driveAll(HOLLOW_STORE, visits, options.batch)
    await driveAll(subject.store, visits, options.batch)
  })
}

/**
 * One repetition on a fresh store: for each kind of operation, in the order of a visit, one row; and one for all of
 * them together, with how long others had to wait.
 */
export function runCosts(part: Part, store: StoreKind, options: Options, batch: number): Promise<Run[]> {
  return withSubject(store, async subject => {
    const runs: Run[] = []
    const { operations } = options
    const warmUpVisits = Math.min(WARM_UP_VISITS, operations)
    await driveAll(subject.store, buildVisits(subject.store, 0, warmUpVisits), batch)
    const visits = buildVisits(subject.store, warmUpVisits, operations)
    for (const operation of OPERATIONS) {
      collectGarbage()
      const driver = await drive(HOLLOW_STORE, operation, visits, batch)
      const driverUs = (driver.cpuMs / driver.operations) * 1000
      const sample = await besideOthers(subject, () => drive(subject.store, operation, visits, batch))
      runs.push({ row: { part, store, of: operation, batch }, sample: { ...sample, driverUs } })
    }
    await checkKept(subject.store, visits)
    // What holding is measured with has costs of its own, so it gets addresses of its own.
    const others = buildVisits(subject.store, warmUpVisits + operations, operations)
    const sample = await subject.holding(() => driveAll(subject.store, others, batch))
    if (Object.keys(sample).length > 0) runs.push({ row: { part, store, of: 'all in turn', batch }, sample })
    return runs
  })
}

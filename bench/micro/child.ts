/** Measures one way to do one step, in a process of its own: `child.js NAME VARIANT MILLISECONDS`. */

import { type Measured, measured } from '../solver/disturbance.ts'
import { prepareOf } from './case.ts'
import { CASES } from './cases/all.ts'
import { garbageOf } from './garbage.ts'
import { checkedPass } from './passes.ts'
import { type Timing, timingOf } from './timing.ts'

/** What it sends to its parent. */
export interface Figures extends Timing {
  readonly garbageBytes: number
  /** Cores that others used meanwhile, on average. */
  readonly othersBusy: number | undefined
}

const [name = '', variant = '', milliseconds = ''] = process.argv.slice(2)

async function figures(): Promise<Figures> {
  const found = CASES.find(({ name: known }) => known === name)
  if (found === undefined) throw new RangeError(`no case ${name}`)
  const work = await prepareOf(found, variant)()
  await checkedPass(work)
  const { value, othersBusy }: Measured<Timing> = await measured(() => timingOf(work, Number(milliseconds)))
  return { ...value, garbageBytes: await garbageOf(work), othersBusy }
}

// Otherwise a child would outlive a parent that was killed.
process.once('disconnect', () => process.exit(1))
process.send!(await figures(), () => process.exit(0))

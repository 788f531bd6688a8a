/** Measures one way to do one step, in a process of its own: `child.js NAME WAY MILLISECONDS`. */

import { measured } from '../disturbance.ts'
import { waysOf } from './case.ts'
import { CASES } from './cases.ts'
import { checkedPass, garbageOf, type Timing, timingOf } from './measuring.ts'

/** What it sends to its parent. */
export interface Figures extends Timing {
  readonly garbageBytes: number
  /** Cores that others used meanwhile, on average. */
  readonly othersBusy: number | undefined
}

const [name = '', label = '', milliseconds = ''] = process.argv.slice(2)

async function figures(): Promise<Figures> {
  const found = CASES.find(one => one.name === name)
  const way = found && waysOf(found, true).find(one => one.label === label)
  if (way === undefined) throw new RangeError(`there is no ${name} by ${label}`)
  const work = await way.prepare()
  await checkedPass(work)
  const { value, othersBusy } = await measured(() => timingOf(work, Number(milliseconds)))
  return { ...value, garbageBytes: await garbageOf(work), othersBusy }
}

// Otherwise a child would outlive a parent that was killed.
process.once('disconnect', () => process.exit(1))
process.send!(await figures(), () => process.exit(0))

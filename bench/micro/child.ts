/**
 * Entry of the process that measures steps (steps.ts), also those of another revision's tree beside this one's. It runs compiled, because
 * tsx would wrap each closure in a call that keeps its name. All steps are prepared before the first is timed, since they are timed in turn.
 */

import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { carryOut } from '../../test/harness/processes.ts'
import { type Measured, measured } from '../disturbance.ts'
import { garbageOf, type Timing, timingsOf } from './measuring.ts'
import { type Load, STEPS } from './steps.ts'
import { requireRight } from './work.ts'

export interface StepOf {
  /** Where a tree's modules were compiled to. */
  readonly folder: string
  readonly name: string
}

export interface MeasureOrder {
  readonly steps: readonly StepOf[]
  readonly milliseconds: number
}

export interface Figures extends Timing {
  readonly garbageBytes: number
  readonly othersBusy: Measured<unknown>['othersBusy']
}

/** Why a step cannot be measured; stands in place of its figures. */
export interface Problem {
  readonly problem: string
}

async function prepared({ folder, name }: StepOf) {
  try {
    const load: Load = path => import(pathToFileURL(join(folder, 'src', `${path}.js`)).href)
    const work = await STEPS.find(step => step.name === name)!.prepare(load)
    requireRight(work, name) // one call, whose result is checked
    return work
  } catch (error) {
    return { problem: (error as Error).message }
  }
}

carryOut(async ({ steps, milliseconds }: MeasureOrder): Promise<(Figures | Problem)[]> => {
  const worksOrProblems = []
  for (const step of steps) worksOrProblems.push(await prepared(step))
  const works = worksOrProblems.flatMap(one => ('problem' in one ? [] : [one]))
  const { value: timings, othersBusy } = await measured(async () => timingsOf(works, milliseconds))
  const figures: (Figures | Problem)[] = []
  for (const one of worksOrProblems) {
    if ('problem' in one) figures.push(one)
    else figures.push({ ...timings[works.indexOf(one)]!, garbageBytes: await garbageOf(one), othersBusy })
  }
  return figures
})

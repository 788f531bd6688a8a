/** Entry of the process that measures the steps of one tree. */

import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { MicroOrder } from './micro.ts'
import { type LoadModule, STEPS, type Step } from './steps.ts'
import { obey } from './tree-process.ts'

/** Between looks at the clock. */
const STEPS_PER_LOOK = 200

const root = process.argv[2]!
const steps = new Map<string, Promise<Step>>()
/** What a step returns must go somewhere, or the compiler may leave the step out. */
let lastResult: unknown

const load: LoadModule = path => import(pathToFileURL(join(root, 'src', path)).href)

/** Nanoseconds of CPU time of a step, the compiler's and the collector's included: garbage is paid for too. */
async function measure({ step: name, warmUpMs, measureMs }: MicroOrder): Promise<number> {
  let step = steps.get(name)
  if (step === undefined) steps.set(name, (step = STEPS[name]!(load)))
  const { run, isRight } = await step
  if (!isRight(run())) throw new Error('gives something else than it should')
  repeat(run, warmUpMs)
  const before = process.cpuUsage()
  const count = repeat(run, measureMs)
  const { user, system } = process.cpuUsage(before)
  if (!isRight(lastResult)) throw new Error('gives something else than it should after a while')
  return ((user + system) * 1000) / count
}

/** @returns how many steps were done */
function repeat(run: () => unknown, ms: number): number {
  const endMs = performance.now() + ms
  let count = 0
  do {
    for (let step = 0; step < STEPS_PER_LOOK; step++) lastResult = run()
    count += STEPS_PER_LOOK
  } while (performance.now() < endMs)
  return count
}

obey(measure)

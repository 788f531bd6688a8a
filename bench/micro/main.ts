/** `npm run bench`: measures the steps of steps.ts, each repetition in a fresh process (child.ts), and reports them. */

import {
  integer,
  tell,
  text,
  toggle,
  tool,
  UsageError,
  type Values,
} from '../../test/harness/command-line.ts'
import { stopOnSignal } from '../../test/harness/processes.ts'
import { isAnyMissed, machine, OUTPUT, publish } from '../report/report.ts'
import type { Figures } from './child.ts'
import { Processes, THIS_TREE } from './processes.ts'
import { aimsOf, reportOf, rowsOf } from './report.ts'
import { STEPS } from './steps.ts'

const OPTIONS = {
  filter: text('TEXT', 'Only steps whose name holds it, such as token or whole.'),
  repeat: integer(5, 1, 100, 'Repetitions, each in a fresh process'),
  milliseconds: integer(300, 1, 60_000, 'Measured time of a step in a repetition'),
  check: toggle('End with code 1 if an aim is missed.'),
  ...OUTPUT,
}

export const MICRO = tool({
  name: 'bench',
  about: `Measures the steps of the three endpoints in process, without HTTP and store: time, operations per second and bytes of
garbage per operation; and a whole verification beside the same by plain node:crypto.`,
  options: OPTIONS,
  example: '--filter token',
  details: 'Takes about a minute. Ends with code 1 if any step has a wrong result.',
  run: bench,
})

async function bench(options: Values<typeof OPTIONS>): Promise<number> {
  const { filter = '', repeat, milliseconds, check } = options
  const steps = STEPS.filter(({ name }) => name.includes(filter))
  if (steps.length === 0) throw new UsageError(`--filter: no step has ${filter} in its name`)
  const surroundings = { ...machine(), openssl: process.versions.openssl }
  const rounds = new Map(steps.map(({ name }): [string, Figures[]] => [name, []]))
  const tellResults = () => {
    const report = { surroundings, milliseconds, rows: rowsOf(rounds), aims: aimsOf(rounds) }
    publish(reportOf(report), report, options)
  }
  stopOnSignal(tellResults)
  const processes = new Processes()
  try {
    const folder = processes.compileTree(THIS_TREE)
    const order = steps.map(({ name }) => ({ folder, name }))
    for (let round = 1; round <= repeat; round++) {
      for (const [index, figures] of (await processes.measure(order, milliseconds)).entries()) {
        const { name } = steps[index]!
        if ('problem' in figures) throw new Error(`${name}: ${figures.problem}`)
        rounds.get(name)!.push(figures)
      }
      tell(`round ${round} of ${repeat}`)
    }
  } finally {
    await processes.stop()
  }
  tellResults()
  return check && isAnyMissed(aimsOf(rounds)) ? 1 : 0
}

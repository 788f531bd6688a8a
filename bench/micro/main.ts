/** `npm run bench`. */

import { filter, integer, tell, toggle, tool, type Values } from '../../test/harness/command-line.ts'
import { stopOnSignal } from '../../test/harness/processes.ts'
import { installPeers, wantedVersions } from '../peers.ts'
import { OUTPUT, publish } from '../report/publish.ts'
import { CASES } from './cases.ts'
import { measureAll, Processes } from './processes.ts'
import { aimsOf, reportOf, rowOf, surroundingsOf } from './report.ts'

const OPTIONS = {
  filter: filter(CASES, ({ name }) => name, 'Only steps whose name holds it, such as token or whole.'),
  repeat: integer(5, 1, 100, 'Repetitions, each in a fresh process'),
  milliseconds: integer(300, 1, 60_000, 'Measured time of a repetition'),
  noPeers: toggle('Without the npm packages.'),
  ...OUTPUT,
}

export const MICRO = tool({
  name: 'bench',
  about: `Measures the steps of the three endpoints in process, without HTTP and store: time, operations per second and bytes of
garbage per operation, beside the same by plain node:crypto; and whole requests beside altcha-lib and @cap.js/server,
which it installs into bench/ the first time.`,
  options: OPTIONS,
  example: '--filter token',
  details: 'Takes about five minutes. Ends with code 1 if any step has a wrong result.',
  run: bench,
})

const PACKAGES: readonly string[] = ['altcha-lib', '@cap.js/server']

async function bench(options: Values<typeof OPTIONS>): Promise<number> {
  const { filter: cases, repeat, milliseconds, noPeers } = options
  const hasPackages = !noPeers && cases.some(({ others = [] }) => others.some(({ isPackage }) => isPackage))
  if (hasPackages) installPeers(tell)
  const versions = Object.entries(wantedVersions()).filter(([name]) => hasPackages && PACKAGES.includes(name))
  const surroundings = surroundingsOf(Object.fromEntries(versions))
  const processes = new Processes()
  stopOnSignal()
  try {
    const sizes = { repeat, milliseconds, hasPackages }
    const runs = await measureAll(cases, sizes, (...one) => processes.measure(...one), tell)
    const rows = runs.map(rowOf)
    const report = { surroundings, ...sizes, rows, aims: aimsOf(rows) }
    publish(reportOf(report), report, options)
    return 0
  } finally {
    await processes.stop()
  }
}

/** `npm run bench:compare -- REV`: builds the revision beside this tree, has both measured in pairs, and reports each case. */

import { existsSync } from 'node:fs'
import { tell, tool, UsageError } from '../../test/harness/command-line.ts'
import { stopOnSignal } from '../../test/harness/processes.ts'
import { Processes, THIS_TREE } from '../micro/processes.ts'
import { publish } from '../report/report.ts'
import { jobsOf, type Measured, measurePairs, OPTIONS, type Options } from './pairs.ts'
import { comparisonOf, exitCodeOf, reportOf } from './report.ts'
import { build, type Checkout, checkOut, commitOf, installPackages } from './tree.ts'

export const COMPARE = tool({
  name: 'bench:compare',
  about: `Measures this tree against another revision of it: CPU time per request of the service, with one worker, and of Redis, and
CPU time and garbage of the steps of the verify path in process. The revision is put into a temporary worktree and built there;
both are measured in turn by this tree's bench, with requests that each mints by itself. Uncommitted changes of this tree count.`,
  options: OPTIONS,
  positionals: [
    {
      name: 'REV',
      expects: 'one revision to compare with, such as HEAD~1 or a tag',
      accepts: rev => rev !== '',
    },
  ],
  example: 'HEAD~1 --only micro',
  details: `\
Ends with code 1 if a case is slower than the threshold by its median, and slower at all by its whole 95 % confidence
interval; also if this tree fails at something that the revision can do, or nothing could be compared. Ctrl-C tells what
was found by then.`,
  run: (options, input) => compare({ ...options, revision: input.required('REV') }),
})

async function compare(options: Options): Promise<number> {
  const { only, revision } = options
  if (only.includes('http') && !existsSync('/proc/self/stat'))
    throw new UsageError('CPU time is read from /proc, so this needs Linux (--only micro does without)')
  const commit = await commitOf(revision)
  const measured: Measured[] = []
  const tellResults = () => {
    const comparison = comparisonOf(options, commit, measured)
    publish(reportOf(comparison), comparison, options)
    return exitCodeOf(comparison.cases)
  }
  stopOnSignal(tellResults)
  tell(`${revision} (${commit.slice(0, 12)}) goes into a temporary worktree`)
  const processes = new Processes()
  let checkout: Checkout | undefined
  try {
    checkout = await checkOut(commit)
    const roots = { old: checkout.root, new: THIS_TREE }
    await installPackages(roots.old)
    const folders = { old: processes.compileTree(roots.old), new: processes.compileTree(roots.new) }
    const jobs = jobsOf(options, { roots, processes, folders })
    if (jobs.length === 0) throw new UsageError(`--filter: no case has ${options.filter} in its name`)
    if (jobs.some(({ part }) => part === 'http'))
      for (const root of Object.values(roots)) {
        tell(`building ${root}`)
        await build(root)
      }
    measured.push(...jobs.map(job => ({ job, pairs: [] })))
    await measurePairs(measured, options)
  } finally {
    await processes.stop()
    await checkout?.stop()
  }
  return tellResults()
}

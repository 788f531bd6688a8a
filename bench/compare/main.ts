/** `npm run bench:compare -- REV`. */

import { existsSync } from 'node:fs'
import { ToolError, tell, tool, UsageError } from '../../test/harness/command-line.ts'
import { publish } from '../report/publish.ts'
import { type Case, checkLoadGenerator, compareJobs, jobsOf, OPTIONS, type Options } from './pairs.ts'
import { type Comparison, comparisonOf, exitCodeOf, reportOf } from './report.ts'
import { build, checkOut, commitOf, installPackages, THIS_TREE } from './tree.ts'

export const COMPARE = tool({
  name: 'bench:compare',
  about: `Measures this tree against another revision of it: CPU time per request of the service, with one worker, and of Redis, and the
steps of the verify path in process. The revision is put into a temporary worktree and built there; both are measured in turn by this
tree's bench, with requests that each mints by itself. Uncommitted changes of this tree count.`,
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
interval; also if this tree fails at something that the revision can do, or nothing could be compared.`,
  run: async (options, input) => {
    const comparison = await compare({ ...options, revision: input.required('REV') })
    publish(reportOf(comparison), comparison, options)
    return exitCodeOf(comparison.cases)
  },
})

async function compare(options: Options): Promise<Comparison> {
  const jobs = jobsOf(options)
  const loads = jobs.filter(({ part }) => part === 'http')
  if (jobs.length === 0) throw new UsageError(`--filter: no case has ${options.filter} in its name`)
  if (loads.length > 0 && !existsSync('/proc/self/stat')) {
    throw new UsageError('CPU time is read from /proc, so this needs Linux (--only micro does without)')
  }
  const commit = await commitOf(options.revision)
  const stopping = new AbortController()
  const stop = () => stopping.abort(new ToolError('stopped before the end'))
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(name, stop)
  const { signal } = stopping
  tell(`${options.revision} (${commit.slice(0, 12)}) goes into a temporary worktree`)
  const checkout = await checkOut(commit, signal)
  try {
    const roots = { old: checkout.root, new: THIS_TREE }
    await installPackages(roots.old, signal, tell)
    if (loads.length > 0) await checkLoadGenerator(roots.old, options.revision)
    for (const root of loads.length > 0 ? [roots.new, roots.old] : []) {
      tell(`building ${root}`)
      await build(root, signal)
    }
    const cases: Case[] = []
    for (const part of ['http', 'micro'] as const) {
      const some = jobs.filter(job => job.part === part)
      if (some.length > 0) cases.push(...(await compareJobs(some, roots, options.repeat, { signal, tell })))
    }
    return comparisonOf(options, commit, cases)
  } finally {
    await checkout.remove()
  }
}

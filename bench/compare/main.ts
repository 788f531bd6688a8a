/** `npm run bench:compare -- REV`. */

import { existsSync } from 'node:fs'
import { tell, tool, UsageError } from '../../test/harness/command-line.ts'
import { leftovers } from '../../test/harness/processes.ts'
import { Processes, THIS_TREE } from '../micro/processes.ts'
import { publish } from '../report/report.ts'
import { type Case, compareJobs, jobsOf, OPTIONS, type Options } from './pairs.ts'
import { type Comparison, comparisonOf, exitCodeOf, reportOf } from './report.ts'
import { savedReport, savedRows } from './saved.ts'
import { type Roots, startTree } from './services.ts'
import { build, checkOut, commitOf, installPackages } from './tree.ts'

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
  run: async (options, input) => {
    if (options.report.length > 0) {
      const rows = savedRows(options.report)
      publish(savedReport(options.report, rows), rows, options)
      return 0
    }
    const comparison = await compare({ ...options, revision: input.required('REV') })
    publish(reportOf(comparison), comparison, options)
    return comparison.isStopped ? 1 : exitCodeOf(comparison.cases)
  },
})

async function compare(options: Options): Promise<Comparison> {
  if (options.only.includes('http') && !existsSync('/proc/self/stat')) {
    throw new UsageError('CPU time is read from /proc, so this needs Linux (--only micro does without)')
  }
  const commit = await commitOf(options.revision)
  const stopping = new AbortController()
  const stop = () => {
    stopping.abort()
    for (const running of leftovers) void running.stop()
  }
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(name, stop)
  const { signal } = stopping
  tell(`${options.revision} (${commit.slice(0, 12)}) goes into a temporary worktree`)
  const checkout = await checkOut(commit, signal).catch((error: Error) => {
    if (signal.aborted) return undefined
    throw error
  })
  try {
    const cases = checkout === undefined ? [] : await compareWith(checkout.root, options, signal)
    return comparisonOf(options, commit, cases, signal.aborted)
  } finally {
    await checkout?.remove()
  }
}

async function compareWith(root: string, options: Options, signal: AbortSignal): Promise<Case[]> {
  const roots = { old: root, new: THIS_TREE }
  const processes = new Processes()
  try {
    await installPackages(roots.old, signal, tell)
    const folders = { old: processes.compileTree(roots.old), new: processes.compileTree(roots.new) }
    const jobs = jobsOf(options, { roots, processes, folders })
    if (jobs.length === 0) throw new UsageError(`--filter: no case has ${options.filter} in its name`)
    if (jobs.some(({ part }) => part === 'http')) await prepareServices(roots, options.revision, signal)
    return await compareJobs(jobs, { ...options, signal, tell })
  } catch (error) {
    if (signal.aborted) return []
    throw error
  } finally {
    await processes.stop()
  }
}

async function prepareServices(roots: Roots, revision: string, signal: AbortSignal): Promise<void> {
  await checkLoadGenerator(roots.old, revision)
  for (const root of [roots.new, roots.old]) {
    tell(`building ${root}`)
    await build(root, signal)
  }
}

/** Throws UsageError if the service of a revision cannot be loaded. */
export async function checkLoadGenerator(root: string, revision: string): Promise<void> {
  const tree = startTree(root)
  try {
    await tree.ask({ type: 'check' })
  } catch (error) {
    const problem = 'has no load generator to compare with (--only micro does without)'
    throw new UsageError(`${revision} ${problem}: ${(error as Error).message.replaceAll('\n', ' ')}`)
  } finally {
    await tree.stop()
  }
}

/** `npm run bench:compare -- REV`: see options.ts for what it does and takes. */

import { existsSync } from 'node:fs'
import { BenchError, runBench, tell, UsageError } from '../support/arguments.ts'
import { writeReport } from '../support/html-report.ts'
import type { Case } from './cases.ts'
import { checkLoadGenerator, compareHttp, httpNames } from './http.ts'
import { compareMicro, microNames } from './micro.ts'
import { HELP, type Options, parseOptions } from './options.ts'
import { type Comparison, comparisonOf, comparisonReport, comparisonText, exitCodeOf } from './report.ts'
import { build, checkOut, commitOf, installPackages, THIS_TREE } from './tree.ts'

async function main(options: Options): Promise<number> {
  checkNames(options)
  const comparison = await compare(options)
  const { isJson, reportFile } = options
  process.stdout.write(`${isJson ? JSON.stringify(comparison, undefined, 2) : comparisonText(comparison)}\n`)
  if (reportFile !== undefined) writeReport(reportFile, comparisonReport(comparison))
  return exitCodeOf(comparison.cases)
}

function checkNames(options: Options): void {
  const names = { http: httpNames(options), micro: microNames(options) }
  if (options.parts.every(part => names[part].length === 0)) {
    throw new UsageError(`--filter: no case has ${JSON.stringify(options.filter)} in its name`)
  }
  const needsHttp = options.parts.includes('http') && names.http.length > 0
  if (needsHttp && !existsSync('/proc/self/stat')) {
    throw new UsageError('CPU time is read from /proc, so this needs Linux (--only micro does without)')
  }
}

async function compare(options: Options): Promise<Comparison> {
  const commit = await commitOf(options.revision)
  const stopping = new AbortController()
  const stop = () => stopping.abort(new BenchError('stopped before the end'))
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(name, stop)
  const { signal } = stopping
  tell(`${options.revision} (${commit.slice(0, 12)}) goes into a temporary worktree`)
  const checkout = await checkOut(commit, signal)
  try {
    const roots = { old: checkout.root, new: THIS_TREE }
    const needsHttp = options.parts.includes('http') && httpNames(options).length > 0
    if (needsHttp) checkLoadGenerator(roots.old, options.revision)
    await installPackages(roots.old, signal, tell)
    const cases: Case[] = []
    if (needsHttp) {
      for (const root of [roots.new, roots.old]) {
        tell(`building ${root}`)
        await build(root, signal)
      }
      cases.push(...(await compareHttp(options, roots, signal, tell)))
    }
    if (options.parts.includes('micro')) cases.push(...(await compareMicro(options, roots, signal, tell)))
    return comparisonOf(options, commit, cases)
  } finally {
    await checkout.remove()
  }
}

await runBench(HELP, parseOptions, main)

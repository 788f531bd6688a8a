#!/usr/bin/env node
/**
 * The command line as a process. What goes wrong becomes lines on stderr.
 *
 *   exit 0   done
 *   exit 1   it could not be done: no such site or key, the store or the service refused or cannot be reached
 *   exit 2   the call could not be understood; nothing was opened or changed
 */

import '../process/supported-platform.ts'
import { scrub } from '../log/redaction.ts'
import { UsageError } from '../sites/rules.ts'
import { AdminError } from '../sites/sites.ts'
import { printable } from './output.ts'
import { run } from './run.ts'

/** The text for stderr. Only an error in powgate itself is printed with its stack. */
function problemText(error: unknown): string {
  if (error instanceof UsageError || error instanceof AdminError) return error.message
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}

// A reader such as `head` may close the pipe before everything is printed.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error
  process.exit()
})

try {
  process.exitCode = await run(process.argv.slice(2))
} catch (error) {
  const lines = scrub(problemText(error)).split('\n') // some repeat what was typed, or what a store said
  process.stderr.write(`${lines.map(printable).join('\n')}\n`)
  process.exitCode = error instanceof UsageError ? 2 : 1
}

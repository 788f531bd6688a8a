/** `powgate check`: prints what check/check.ts finds. */

import { OperatorError } from '../words/errors.ts'
import type { CommandEntry, Input } from './command.ts'
import { printJson, printLine, printPairs } from './output.ts'

export const CHECK_COMMAND: CommandEntry = {
  name: 'check',
  about: 'Check the configuration and the store, and say what serve would do. Changes nothing that lasts.',
  run,
}

async function run(input: Input): Promise<number> {
  const { facts, problems, warnings, notes } = await (await import('../check/check.ts')).check(process.env)
  if (input.has('json')) {
    const ok = problems.length === 0
    printJson({ ok, problems, warnings, notes, facts: Object.fromEntries(facts) })
    return ok ? 0 : 1
  }
  if (facts.length > 0) printPairs(facts)
  for (const warning of warnings) printLine('', `warning: ${warning}`)
  for (const note of notes) printLine('', `note: ${note}`)
  if (problems.length > 0) throw new OperatorError(problems.join('\n'))
  printLine('', warnings.length === 0 ? 'It would start.' : 'It would start; see the warnings.')
  return 0
}

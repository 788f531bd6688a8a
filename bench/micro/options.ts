/** The command line of `npm run bench`. */

import { integer, parsed, UsageError } from '../support/arguments.ts'
import type { Case } from './case.ts'
import { CASES } from './cases/all.ts'

export interface Options {
  readonly cases: readonly Case[]
  /** Processes for each way to do a step. */
  readonly repeat: number
  /** Of measuring in each process; it warms up for as long before. */
  readonly milliseconds: number
  readonly hasPeers: boolean
  readonly isJson: boolean
  /** Where to write the figures as a page. */
  readonly reportFile: string | undefined
}

export const HELP = `
Measures the steps of the three endpoints in process, without HTTP and store: time, operations per second and bytes of
garbage per operation, beside the same by plain node:crypto; and whole requests beside altcha-lib and @cap.js/server,
which it installs into bench/ the first time.

  npm run bench -- [options]

  --filter TEXT      only steps whose name holds it, such as token or whole; repeatable
  --repeat N         repetitions, each in a fresh process, 1 to 100, default 5
  --milliseconds N   measured time of a repetition, 1 to 60000, default 300
  --no-peers         without the npm packages
  --json             the figures as JSON on standard output
  --report FILE      the figures as one HTML page, too
  --help             this text

Takes about five minutes. Ends with code 1 if any step has a wrong result.
`.trim()

const OPTIONS = {
  filter: { type: 'string', multiple: true },
  repeat: { type: 'string', default: '5' },
  milliseconds: { type: 'string', default: '300' },
  'no-peers': { type: 'boolean', default: false },
  json: { type: 'boolean', default: false },
  report: { type: 'string' },
  help: { type: 'boolean', default: false },
} as const

/** undefined: help is asked for. Throws UsageError. */
export function parseOptions(args: readonly string[]): Options | undefined {
  const { values } = parsed(args, { options: OPTIONS })
  if (values.help) return undefined
  return {
    cases: casesNamed(values.filter ?? ['']),
    repeat: integer('--repeat', values.repeat, 1, 100),
    milliseconds: integer('--milliseconds', values.milliseconds, 1, 60_000),
    hasPeers: !values['no-peers'],
    isJson: values.json,
    reportFile: values.report,
  }
}

function casesNamed(filter: readonly string[]): Case[] {
  const cases = CASES.filter(({ name }) =>
    filter.some(text => name.toLowerCase().includes(text.toLowerCase())),
  )
  if (cases.length === 0) {
    const names = CASES.map(({ name }) => name)
    throw new UsageError(`--filter: expected a part of one of: ${names.join('; ')}`)
  }
  return cases
}

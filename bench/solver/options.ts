/** The command line of `npm run bench:solver`. */

import { parsed, UsageError } from '../support/arguments.ts'
import { CONTENDER_NAMES, CONTENDERS, type ContenderName } from './contenders.ts'

export interface Options {
  readonly contenders: readonly ContenderName[]
  /** Of each rate. */
  readonly repeat: number
  readonly warmUpMs: number
  readonly measureMs: number
  /** What is disturbed is measured again until the rates have taken so long. */
  readonly retryMs: number
  /** Bits. */
  readonly difficulties: readonly number[]
  readonly noncesPerDifficulty: number
  /** Where to write the figures as JSON. */
  readonly jsonFile: string | undefined
  /** Where to write the figures as a web page. */
  readonly reportFile: string | undefined
}

export const HELP = `
Measures the solvers in headless Chromium: hashes per second on one thread and on all that the widget would take,
beside @cap.js/wasm, hash-wasm and WebCrypto in the same browser, in turn; and how long the widget's workers take to
solve. Installs the packages that it compares with into bench/ the first time.

  npm run bench:solver -- [options]

  --filter TEXT   only solvers whose name holds it, such as powgate or cap; repeatable
  --quick         small sizes: whether it works, not how fast it is
  --json FILE     the figures, as JSON too
  --report FILE   and as a web page
  --help          this text

Takes two to six minutes: what is measured while others use the machine is measured again. Ends with code 1 if any
solver finds a wrong counter.
`.trim()

const FULL = {
  repeat: 9,
  warmUpMs: 300,
  measureMs: 600,
  retryMs: 120_000,
  difficulties: [16, 18, 20, 22],
  noncesPerDifficulty: 60,
}
const QUICK = {
  repeat: 2,
  warmUpMs: 20,
  measureMs: 50,
  retryMs: 0,
  difficulties: [16, 18],
  noncesPerDifficulty: 3,
}

const OPTIONS = {
  filter: { type: 'string', multiple: true },
  quick: { type: 'boolean', default: false },
  json: { type: 'string' },
  report: { type: 'string' },
  help: { type: 'boolean', default: false },
} as const

/** undefined: help is asked for. Throws UsageError. */
export function parseOptions(args: readonly string[]): Options | undefined {
  const { help, quick, filter, json, report } = parsed(args, { options: OPTIONS }).values
  if (help) return undefined
  const contenders = CONTENDER_NAMES.filter(name => isWanted(CONTENDERS[name].label, filter))
  if (contenders.length === 0) {
    const labels = CONTENDER_NAMES.map(name => CONTENDERS[name].label)
    throw new UsageError(`--filter: expected a part of one of: ${labels.join('; ')}`)
  }
  return { ...(quick ? QUICK : FULL), contenders, jsonFile: json, reportFile: report }
}

function isWanted(label: string, filter: readonly string[] = ['']): boolean {
  return filter.some(text => label.toLowerCase().includes(text.toLowerCase()))
}

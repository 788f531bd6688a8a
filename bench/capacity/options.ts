/** The command line of `npm run bench:capacity`. */

import { parsed, UsageError } from '../support/arguments.ts'

export const SOURCES = ['http', 'micro', 'solver', 'store'] as const
export type Source = (typeof SOURCES)[number]

export interface Options {
  /** Files with the figures of other benches. None of them: they are measured now. */
  readonly files: Readonly<Partial<Record<Source, string>>>
  /** Of a core and hour. */
  readonly pricePerHour: number
  /** Where the page is put between its markers. */
  readonly writeFile: string | undefined
  readonly isJson: boolean
  readonly reportFile: string | undefined
}

export const HELP = `
Computes what a load takes and what an attack costs, from measured figures only: cores of workers and Redis, memory,
CPU time and money for a million verifications, and the CPU time of an attacker against ours at each difficulty.

  npm run bench:capacity -- [options]

  --http FILE     figures of npm run -s bench:http -- --json
  --solver FILE   figures of npm run bench:solver -- --json FILE
  --store FILE    figures of npm run -s bench:store -- --json
  --micro FILE    figures of npm run -s bench -- --json
  --price N       of a core for an hour, in any unit of currency, default 0.04
  --write FILE    puts the page into a file, between the markers that are there, instead of on standard output
  --json          the figures as JSON on standard output
  --report FILE   the figures as an HTML page, too
  --help          this text

Without any file it runs the first three itself, for some minutes. With files, what was not given is left out, but for
--http, which is needed. The native hash rate is that of the openssl program, measured here each time.
`.trim()

const OPTIONS = {
  http: { type: 'string' },
  micro: { type: 'string' },
  solver: { type: 'string' },
  store: { type: 'string' },
  price: { type: 'string', default: '0.04' },
  write: { type: 'string' },
  json: { type: 'boolean', default: false },
  report: { type: 'string' },
  help: { type: 'boolean', default: false },
} as const

/** undefined: help is asked for. Throws UsageError. */
export function parseOptions(args: readonly string[]): Options | undefined {
  const { values } = parsed(args, { options: OPTIONS })
  if (values.help) return undefined
  const given = SOURCES.flatMap(source => {
    const file = values[source]
    return file === undefined ? [] : [[source, file] as const]
  })
  if (given.length > 0 && values.http === undefined) {
    throw new UsageError('--http: expected a file too, since all else is computed from it')
  }
  const pricePerHour = Number(values.price)
  if (values.price.trim() === '' || !(pricePerHour > 0 && pricePerHour <= 1e6)) {
    throw new UsageError(`--price: expected a number above 0, at most 1000000, got ${values.price}`)
  }
  return {
    files: Object.fromEntries(given),
    pricePerHour,
    writeFile: values.write,
    isJson: values.json,
    reportFile: values.report,
  }
}

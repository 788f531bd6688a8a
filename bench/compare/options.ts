/** The command line of `npm run bench:compare`. */

import { STORE_KINDS, type StoreKind } from '../../test/harness/service.ts'
import { ENDPOINTS, type Endpoint } from '../http/traffic.ts'
import { number, oneOf, parsed, UsageError } from '../support/arguments.ts'

export const PARTS = ['http', 'micro'] as const
export type Part = (typeof PARTS)[number]

export interface Options {
  /** As it was given: a branch, tag, commit or HEAD~3. */
  readonly revision: string
  readonly parts: readonly Part[]
  readonly endpoints: readonly Endpoint[]
  readonly stores: readonly StoreKind[]
  /** A part of the names of the cases that are wanted. */
  readonly filter: string
  /** Pairs of each case. */
  readonly repeat: number
  /** Measured time of an HTTP case. */
  readonly seconds: number
  /** A ratio new/old above it is too slow. */
  readonly threshold: number
  readonly isJson: boolean
  readonly reportFile: string | undefined
}

export const HELP = `
Measures this tree against another revision of it: CPU time per request of the service, with one worker, and of Redis, and the
steps of the verify path in process. The revision is put into a temporary worktree and built there; both are measured in turn by this
tree's bench, with requests that each mints by itself. Uncommitted changes of this tree count.

  npm run bench:compare -- REV [options]

  REV                      what to compare with: a commit, branch, tag, HEAD, HEAD~3
  --only http|micro        one part only
  --endpoint NAME          challenge, verify or verify-token; repeatable; default all three
  --store embedded|redis|both   default both; redis needs redis-server on the path
  --filter TEXT            only cases whose name holds it, such as token or redis
  --repeat N               pairs of each case, 2 to 100, default 7
  --seconds N              measured time of an HTTP case, 0.1 to 60, default 2; a step in process takes a tenth of it
  --threshold N            ratio new/old above which a case is too slow, 1 to 10, default 1.05
  --json                   the figures as JSON on standard output
  --report FILE            the figures as an HTML page, too
  --help                   this text

Ends with code 1 if a case is slower than the threshold by its median, and slower at all by its whole 95 % confidence
interval; also if this tree fails at something that the revision can do, or nothing could be compared.
`.trim()

const OPTIONS = {
  only: { type: 'string' },
  endpoint: { type: 'string', multiple: true },
  store: { type: 'string', default: 'both' },
  filter: { type: 'string', default: '' },
  repeat: { type: 'string', default: '7' },
  seconds: { type: 'string', default: '2' },
  threshold: { type: 'string', default: '1.05' },
  json: { type: 'boolean', default: false },
  report: { type: 'string' },
  help: { type: 'boolean', default: false },
} as const

/** undefined: help is asked for. Throws UsageError. */
export function parseOptions(args: readonly string[]): Options | undefined {
  const { values, positionals } = parsed(args, { allowPositionals: true, options: OPTIONS })
  if (values.help) return undefined
  const [revision, ...more] = positionals
  if (revision === undefined || more.length > 0) {
    throw new UsageError('expected one revision to compare with, such as HEAD~1 (--help tells more)')
  }
  const repeat = number('--repeat', values.repeat, 2, 100)
  if (!Number.isInteger(repeat)) throw new UsageError(`--repeat: expected an integer, got ${values.repeat}`)
  return {
    revision,
    parts: values.only === undefined ? PARTS : [oneOf('--only', values.only, PARTS)],
    endpoints: values.endpoint?.map(name => oneOf('--endpoint', name, ENDPOINTS)) ?? ENDPOINTS,
    stores: values.store === 'both' ? STORE_KINDS : [oneOf('--store', values.store, STORE_KINDS)],
    filter: values.filter,
    repeat,
    seconds: number('--seconds', values.seconds, 0.1, 60),
    threshold: number('--threshold', values.threshold, 1, 10),
    isJson: values.json,
    reportFile: values.report,
  }
}

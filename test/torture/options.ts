/** The command line of `npm run torture`. */

import { randomInt } from 'node:crypto'
import { integer, number, parsed, UsageError } from '../../bench/support/arguments.ts'
import { CASES } from './cases.ts'
import type { TortureCase } from './run.ts'

export interface Options {
  readonly cases: readonly TortureCase[]
  readonly seconds: number | undefined
  readonly seed: number
  readonly isJson: boolean
  readonly historyDir: string | undefined
  readonly repeat: number
}

const SEED_MAX = 2 ** 32 - 1

export function help(): string {
  const rows = CASES.map(({ number: id, name, aim, fullSize }) =>
    [`${String(id).padStart(4)}  ${name}`, `        ${fullSize}`, `        must hold: ${aim}`].join('\n'),
  )
  return `npm run torture -- [options]

Starts powgate and its stores on loopback, mistreats them, records every call and what became of it (ok, refused, failed,
unknown), and checks the history afterwards. An answer that did not come is unknown, never failed. Exits with 1 if
something did not hold, and prints the seed and the command that repeat it.

  --only 3,single-use  these cases (numbers or names); without it, all
  --seconds S          at most about so long for each case, in small sizes, and no times are judged; without it, the full sizes
  --seed N             1 to ${SEED_MAX}: the same choices again (what is sent, killed, struck and in which order), not the
                       same timing, which is the machine's; without it, random
  --repeat N           case 9 in full measures everything N times on the same service and tells medians and ranges; 1 if
                       not given
  --json               one JSON line a case
  --history DIR        writes the histories of cases 3 to 8 there, one JSON line a call
  --help               this text

The full run takes more than an hour and wants a Linux machine that does nothing else. Needs redis-server, nginx and
haproxy (\`npm run test:all\` installs them) and a build (\`npm run -s build\`).

Cases:
${rows.join('\n')}`
}

const OPTIONS = {
  only: { type: 'string' },
  seconds: { type: 'string' },
  seed: { type: 'string' },
  repeat: { type: 'string' },
  json: { type: 'boolean', default: false },
  history: { type: 'string' },
  help: { type: 'boolean', default: false },
} as const

/** @returns undefined if only the help was requested @throws UsageError */
export function parseOptions(args: readonly string[]): Options | undefined {
  const { values } = parsed(args, { options: OPTIONS })
  if (values.help) return undefined
  return {
    cases: values.only === undefined ? CASES : chosen(values.only),
    seconds: values.seconds === undefined ? undefined : number('--seconds', values.seconds, 1, 86_400),
    seed: values.seed === undefined ? randomInt(1, 2 ** 31) : integer('--seed', values.seed, 1, SEED_MAX),
    isJson: values.json,
    historyDir: values.history,
    repeat: values.repeat === undefined ? 1 : integer('--repeat', values.repeat, 1, 100),
  }
}

function chosen(text: string): TortureCase[] {
  return text.split(',').map(word => {
    const found = CASES.find(({ number: id, name }) => String(id) === word.trim() || name === word.trim())
    if (found !== undefined) return found
    const known = CASES.map(({ number: id, name }) => `${id} ${name}`).join(', ')
    throw new UsageError(`--only: no case ${word}; there are ${known}`)
  })
}

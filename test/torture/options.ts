/** The command line of `npm run torture`. */

import { randomInt } from 'node:crypto'
import { integer, number, text, toggle, UsageError, type Values } from '../harness/command-line.ts'
import { CASES } from './cases.ts'
import type { TortureCase } from './run.ts'

const SEED_MAX = 2 ** 32 - 1

export const ABOUT = `Starts powgate and its stores on loopback, mistreats them, records every call and what became of it (ok, refused, failed,
unknown), and checks the history afterwards. An answer that did not come is unknown, never failed. Exits with 1 if
something did not hold, and prints the seed and the command that repeat it.`

export const OPTIONS = {
  only: text('3,single-use', 'These cases (numbers or names); without it, all.'),
  seconds: number(
    undefined,
    1,
    86_400,
    'At most about so long for each case, in small sizes, and no times are judged; without it, the full sizes',
  ),
  seed: integer(
    undefined,
    1,
    SEED_MAX,
    'The same choices again (what is sent, killed, struck and in which order), not the same timing; without it, random',
  ),
  repeat: integer(
    1,
    1,
    100,
    'Case 9 in full measures everything N times on the same service, and tells medians and ranges',
  ),
  json: toggle('One JSON line a case.'),
  history: text('DIR', 'Writes the histories of cases 3 to 8 there, one JSON line a call.'),
}

export interface Options extends Omit<Values<typeof OPTIONS>, 'only' | 'seed'> {
  readonly cases: readonly TortureCase[]
  readonly seed: number
}

/** @throws UsageError */
export function tortureOptions({
  only,
  seed = randomInt(1, 2 ** 31),
  ...rest
}: Values<typeof OPTIONS>): Options {
  return { ...rest, seed, cases: only === undefined ? CASES : chosen(only) }
}

export function details(): string {
  const rows = CASES.map(({ number: id, name, aim, fullSize }) =>
    [`${String(id).padStart(4)}  ${name}`, `        ${fullSize}`, `        must hold: ${aim}`].join('\n'),
  )
  return `The full run takes more than an hour and wants a Linux machine that does nothing else. Needs redis-server, nginx and
haproxy (\`npm run test:all\` installs them) and a build (\`npm run -s build\`).

Cases:
${rows.join('\n')}`
}

function chosen(text: string): TortureCase[] {
  return text.split(',').map(word => {
    const found = CASES.find(({ number: id, name }) => String(id) === word.trim() || name === word.trim())
    if (found !== undefined) return found
    const known = CASES.map(({ number: id, name }) => `${id} ${name}`).join(', ')
    throw new UsageError(`--only: no case ${word}; there are ${known}`)
  })
}

/** `powgate solve`, for trying the service by hand. A browser is faster, because it uses all cores. */

import { checkProof } from '../domain/pow.ts'
import { BITS } from '../domain/site-fields.ts'
import { isNonceText } from '../protocol/proof.ts'
import type { Challenge } from '../protocol/wire.ts'
import type { CommandEntry, Input } from './command.ts'
import { printJson, printLine } from './output.ts'

export const SOLVE_COMMAND: CommandEntry = {
  name: 'solve',
  about: 'Find the counter of a challenge, as a browser does.',
  positionals: [
    {
      name: 'NONCE',
      expects: 'the nonce of a challenge, 32 lowercase hexadecimal characters',
      accepts: isNonceText,
    },
    { ...BITS.text!, name: 'DIFFICULTY' },
  ],
  example: '0a9d05a605cbd13bec3ddec314598e14 18',
  run: runSolve,
}

async function runSolve(input: Input): Promise<void> {
  const difficulty = Number(input.required('DIFFICULTY'))
  const solved = solve({ nonce: input.required('NONCE'), difficulty })
  if (input.has('json')) printJson(solved)
  else printLine(String(solved.counter))
}

type Puzzle = Pick<Challenge, 'nonce' | 'difficulty'>

export interface Solved {
  readonly counter: number
  readonly hashes: number
  readonly ms: number
}

/** About a tenth of a second. */
const REPORT_HASHES = 2 ** 18
const CLEAR_LINE = '\r\x1b[K'

/** Shows progress on a terminal. */
export function solve({ nonce, difficulty }: Puzzle, terminal = process.stderr): Solved {
  const startedAtMs = performance.now()
  let counter = 0
  while (!checkProof(nonce, counter, difficulty)) {
    counter++
    if (counter % REPORT_HASHES === 0 && terminal.isTTY) {
      const ms = performance.now() - startedAtMs
      // At most 80 columns: a wrapped line could not be cleared.
      const all = `${millions(counter)} of about ${millions(2 ** difficulty)} million hashes`
      terminal.write(`${CLEAR_LINE}solving: ${all}, ${rateText(counter, ms)}`)
    }
  }
  if (terminal.isTTY) terminal.write(CLEAR_LINE)
  return { counter, hashes: counter + 1, ms: performance.now() - startedAtMs }
}

export function effortText({ hashes, ms }: Solved): string {
  return `${millions(hashes)} million hashes, ${rateText(hashes, ms)}`
}

function millions(count: number): string {
  return (count / 1e6).toFixed(2)
}

function rateText(hashes: number, ms: number): string {
  return `${(hashes / ms / 1000).toFixed(2)} MH/s, ${(ms / 1000).toFixed(1)} s`
}

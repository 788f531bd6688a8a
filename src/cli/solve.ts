/** `powgate solve`, for trying the service by hand. A browser is faster, because it uses all cores. */

import { nonceTerms } from '../domain/nonce.ts'
import { checkProof, makeFunction, newHashwx } from '../domain/pow.ts'
import { BITS } from '../domain/site-fields.ts'
import { BATCH } from '../protocol/hashwx-machine.ts'
import { COUNTERS_PER_FUNCTION, isNonceText, type PuzzleName } from '../protocol/proof.ts'
import type { Challenge } from '../protocol/wire.ts'
import type { CommandEntry, Input } from './command.ts'
import { printJson, printLine } from './output.ts'

export const SOLVE_COMMAND: CommandEntry = {
  name: 'solve',
  about: 'Find the counter of a challenge, as a browser does. The nonce says which puzzle it is.',
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

type Task = Pick<Challenge, 'nonce' | 'difficulty'> & Partial<Challenge>

export interface Solved {
  readonly counter: number
  readonly hashes: number
  readonly ms: number
}

/** The first of `count` counters that is a proof, or -1. */
type Search = (nonce: string, difficulty: number, start: number, count: number) => number

/** Progress is shown after each `step` counters: about a tenth of a second of SHA-256, or one function of HashWX. */
const SEARCHES = {
  sha256: { search: searchSha256, step: 2 ** 18 },
  hashwx: { search: searchHashwx, step: COUNTERS_PER_FUNCTION },
} satisfies Record<PuzzleName, { search: Search; step: number }>

const CLEAR_LINE = '\r\x1b[K'

export function solve({ nonce, difficulty, algorithm = nonceTerms(nonce).puzzle }: Task): Solved {
  const terminal = process.stderr
  const startedAtMs = performance.now()
  const { search, step } = SEARCHES[algorithm]
  for (let start = 0; ; start += step) {
    const counter = search(nonce, difficulty, start, step)
    const ms = performance.now() - startedAtMs
    if (counter >= 0) {
      if (terminal.isTTY) terminal.write(CLEAR_LINE)
      return { counter, hashes: counter + 1, ms }
    }
    if (!terminal.isTTY) continue
    // Keeps within 80 columns, because a wrapped line could not be cleared.
    const all = `${millions(start + step)} of about ${millions(2 ** difficulty)} million hashes`
    terminal.write(`${CLEAR_LINE}solving: ${all}, ${rateText(start + step, ms)}`)
  }
}

function searchSha256(nonce: string, difficulty: number, start: number, count: number): number {
  for (let counter = start; counter < start + count; counter++)
    if (checkProof(nonce, counter, difficulty, 'sha256')) return counter
  return -1
}

const machine = newHashwx()

/** HashWX has another random function for each COUNTERS_PER_FUNCTION counters: `count` is that, a multiple of BATCH. WebAssembly runs it fastest. */
function searchHashwx(nonce: string, difficulty: number, start: number, count: number): number {
  makeFunction(machine, nonce, start)
  const run = machine.link(new WebAssembly.Module(machine.emit()))
  for (let counter = start; counter < start + count; counter += BATCH) {
    const found = machine.search(run, counter, BATCH, difficulty)
    if (found >= 0) return found
  }
  return -1
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

/** Reads faults.txt, which describes its own form. */

import { readFileSync } from 'node:fs'

export interface Fault {
  readonly line: string
  /** Below src/. */
  readonly file: string
  /** Text of the file, and what takes its place. */
  readonly text: string
  readonly faulty: string
  /** Below test/, or `contract:SECTION`. */
  readonly tests: readonly string[]
  /** Why none of the tests notices. */
  readonly survives: string | undefined
}

const SURVIVES = 'survives: '

export function faults(): Fault[] {
  const lines = readFileSync(new URL('faults.txt', import.meta.url), 'utf8').split('\n')
  return lines
    .filter(line => line !== '' && !line.startsWith('#'))
    .map(line => {
      const [file = '', text = '', faulty = '', tests = '', survives] = line.split('\t')
      return { line, file, text, faulty, tests: namesIn(tests), survives: survives?.slice(SURVIVES.length) }
    })
}

/** Names stand between spaces; the name of a section of the contract has spaces itself. */
function namesIn(tests: string): string[] {
  return tests.split(/ (?=\S+\.ts(?: |$)|contract:)/)
}

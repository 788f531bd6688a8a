/** `powgate solve`: the counter of a challenge, for those who try the service by hand, as with curl. Asks no service. */

import { isNonceText } from '../protocol/proof.ts'
import type { Command, Input } from './command.ts'
import { printJson, printLine } from './output.ts'
import { BITS, JSON_FLAG } from './site-flags.ts'
import { solve } from './solver.ts'

export const SOLVE_COMMAND: Command = {
  name: 'solve',
  about: 'Find the counter of a challenge, as a browser does.',
  positionals: [
    {
      name: 'NONCE',
      expects: 'the nonce of a challenge, 32 lowercase hexadecimal characters',
      accepts: isNonceText,
    },
    { ...BITS, name: 'DIFFICULTY' },
  ],
  flags: { json: JSON_FLAG },
  example: '0a9d05a605cbd13bec3ddec314598e14 18',
  run: runSolve,
}

async function runSolve(input: Input): Promise<void> {
  const difficulty = Number(input.required('DIFFICULTY'))
  const solved = solve({ nonce: input.required('NONCE'), difficulty })
  if (input.has('json')) printJson(solved)
  else printLine(String(solved.counter))
}

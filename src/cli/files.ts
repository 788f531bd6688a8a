/** Files that a flag names; - is standard input. */

import { createReadStream } from 'node:fs'
import { CommandError } from '../sites/rules.ts'
import { systemErrorText } from '../words/system-error.ts'
import type { FlagValue } from './command.ts'

/** Room for an export of 100,000 sites. */
const FILE_BYTES_MAX = 64 * 2 ** 20
const STANDARD_INPUT = '-'

export function fileValue(expects: string): FlagValue {
  return { placeholder: 'FILE', expects, accepts: text => text !== '' }
}

export async function readBytes(flag: string, path: string): Promise<Buffer> {
  const stream = path === STANDARD_INPUT ? process.stdin : createReadStream(path)
  const chunks: Buffer[] = []
  let length = 0
  try {
    for await (const chunk of stream) {
      chunks.push(chunk as Buffer)
      length += (chunk as Buffer).length
      if (length > FILE_BYTES_MAX) throw new Error(`longer than ${FILE_BYTES_MAX} bytes`)
    }
  } catch (error) {
    throw new CommandError(`--${flag}: cannot read ${path}: ${systemErrorText(error)}`)
  }
  return Buffer.concat(chunks)
}

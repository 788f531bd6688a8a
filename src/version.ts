/** The version of powgate, and the command by which it was started. */

import { readFileSync } from 'node:fs'

const manifest = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
  version: string
}

export const VERSION = manifest.version

/** The command by which the person at the terminal started powgate, so that the examples can be copied. */
export const PROGRAM = process.env.npm_lifecycle_event === 'powgate' ? 'npm run -s powgate --' : 'powgate'

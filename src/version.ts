/** The name and the version of this program. */

import { readFileSync } from 'node:fs'

const manifest = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
  version: string
}

/** The version of this powgate, from package.json. */
export const VERSION = manifest.version

/** How the person at the terminal called it, so that the examples can be copied. */
export const PROGRAM = process.env.npm_lifecycle_event === 'powgate' ? 'npm run -s powgate --' : 'powgate'

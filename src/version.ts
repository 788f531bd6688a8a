import { readFileSync } from 'node:fs'

const manifest = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
  version: string
}

export const VERSION = manifest.version

/** The command with which this program was started, for examples that can be copied. */
export const PROGRAM = process.env.npm_lifecycle_event === 'powgate' ? 'npm run -s powgate --' : 'powgate'

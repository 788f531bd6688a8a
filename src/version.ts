/** What a program says of itself: its version, and the command that started it. */

import { readFileSync } from 'node:fs'

const manifest = readFileSync(new URL('../package.json', import.meta.url), 'utf8')
export const VERSION: string = JSON.parse(manifest).version

/** The command with which this program was started, for examples that can be copied. */
export const PROGRAM = process.env.npm_lifecycle_event === 'powgate' ? 'npm run -s powgate --' : 'powgate'

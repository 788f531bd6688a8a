/** What a program says of itself: its version, and the command that started it. */

import { readFileSync } from 'node:fs'

const manifest = readFileSync(new URL('../package.json', import.meta.url), 'utf8')
export const VERSION: string = JSON.parse(manifest).version

const isClone = process.env.npm_lifecycle_event === 'powgate' || process.argv[1]?.endsWith('/dist/main.js')
/** The command for examples that can be copied: that of this start, or in a clone of its script (`npm start` runs dist/main.js). */
export const PROGRAM = isClone ? 'npm run -s powgate --' : 'powgate'

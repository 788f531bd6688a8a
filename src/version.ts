/** What a program says of itself: its version, and the command that started it. */

import { readFileSync } from 'node:fs'

const manifest = readFileSync(new URL('../package.json', import.meta.url), 'utf8')
export const VERSION: string = JSON.parse(manifest).version

const isClone = process.env.npm_lifecycle_event === 'powgate' || process.argv[1]?.endsWith('/dist/main.js')
/** The command line's name in examples that can be copied: in a clone it is an npm script (`npm start` runs dist/main.js). */
export const PROGRAM = isClone ? 'npm run -s powgate --' : 'powgate'

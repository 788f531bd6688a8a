/** `npm run torture`: its options, and the run of the chosen cases. */

import { randomInt } from 'node:crypto'
import { existsSync } from 'node:fs'
import {
  integer,
  number,
  runTool,
  tell,
  text,
  toggle,
  tool,
  UsageError,
  type Values,
} from '../../harness/command-line.ts'
import { hasSignal, stopOnSignal } from '../../harness/processes.ts'
import { CASES } from './cases.ts'
import { runCase, type TortureCase, verdictText } from './run.ts'

const BUILT = new URL('../../../dist/main.js', import.meta.url)
const SEED_MAX = 2 ** 32 - 1

const ABOUT = `Starts powgate and its stores on loopback, mistreats them, records every call and what became of it (ok, refused, failed,
unknown), and checks the history afterwards. An answer that did not come is unknown, never failed. Exits with 1 if
something did not hold, and prints the seed and the command that repeat it.`

const OPTIONS = {
  only: text('6,bad-inputs', 'These cases (numbers or names); without it, all.'),
  seconds: number(
    undefined,
    1,
    86_400,
    'At most about so long for each case, in small sizes, and no times are judged; without it, the full sizes',
  ),
  seed: integer(
    undefined,
    1,
    SEED_MAX,
    'The same choices again (what is sent, killed, struck and in which order), not the same timing; without it, random',
  ),
  json: toggle('One JSON line a case.'),
}

function details(): string {
  const rows = CASES.map(({ number: id, name, aim, fullSize }) =>
    [`${String(id).padStart(4)}  ${name}`, `        ${fullSize}`, `        must hold: ${aim}`].join('\n'),
  )
  return `The full run takes more than an hour and wants a Linux machine that does nothing else. Needs redis-server, nginx and
haproxy (\`npm run test:release\` installs them) and a build (\`npm run -s build\`).

Cases:
${rows.join('\n')}`
}

function chosen(only: string): TortureCase[] {
  return only.split(',').map(word => {
    const found = CASES.find(({ number: id, name }) => String(id) === word.trim() || name === word.trim())
    if (found !== undefined) return found
    const known = CASES.map(({ number: id, name }) => `${id} ${name}`).join(', ')
    throw new UsageError(`--only: no case ${word}; there are ${known}`)
  })
}

async function run(options: Values<typeof OPTIONS>): Promise<number> {
  const { only, seed = randomInt(1, 2 ** 31), seconds, json } = options
  const cases = only === undefined ? CASES : chosen(only)
  if (!existsSync(BUILT)) throw new UsageError('the service is not built: npm run -s build')
  tell(`seed ${seed}`)
  stopOnSignal()
  const broken: number[] = []
  for (const one of cases) {
    const onProgress = (text: string) => tell(`${one.number} ${one.name}: ${text}`)
    const verdict = await runCase(one, { seed, seconds, onProgress })
    if (hasSignal()) return 1
    process.stdout.write(`${json ? JSON.stringify(verdict) : verdictText(verdict)}\n`)
    if (!verdict.holds) broken.push(one.number)
  }
  const held = cases.length - broken.length
  tell(`${held} of ${cases.length} cases hold${broken.length > 0 ? `; broken: ${broken}` : ''}`)
  return broken.length === 0 ? 0 : 1
}

const TORTURE = tool({
  name: 'torture',
  about: ABOUT,
  options: OPTIONS,
  example: '--only 9 --seconds 20',
  details: details(),
  run,
})
await runTool(TORTURE, process.argv.slice(2))
// Everything that was started has ended; timers of a client library are not awaited.
process.exit()

/** `npm run bench:store`: runs the parts of parts.ts on each store, repetition after repetition, and reports them. */

import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { integer, tell, tool, UsageError, type Values } from '../../test/harness/command-line.ts'
import { stopOnSignal } from '../../test/harness/processes.ts'
import { STORE_KINDS } from '../../test/harness/service.ts'
import { choices } from '../report/options.ts'
import { OUTPUT, publish } from '../report/report.ts'
import { PARTS, type Run, rowsOf } from './figures.ts'
import { RUNNERS, warmUp } from './parts.ts'
import { figuresOf, progressLine, reportOf } from './report.ts'

const OPTIONS = {
  store: choices(STORE_KINDS, 'Only these stores (redis needs redis-server 7 or newer on the path)'),
  only: choices(PARTS, 'Only these parts'),
  repeat: integer(5, 1, 100, 'Repetitions, each on a fresh store'),
  operations: integer(20_000, 100, 200_000, 'Of each kind in a measured pass'),
  batch: integer(32, 1, 1000, 'Operations in one tick of the event loop'),
  maxAddresses: integer(1_000_000, 1000, 1_000_000, 'How far addresses grow; memory takes no more either'),
  ...OUTPUT,
}

export const STORE = tool({
  name: 'bench:store',
  about: `Measures the stores without HTTP: what a challenge, a verification and a redemption cost Redis or the store process,
what an address takes in memory, and whether any of it grows with the addresses.`,
  options: OPTIONS,
  example: '--store redis --only memory',
  details:
    'All of it takes some twenty minutes, most of them for growth. Ends with code 1 if any answer was not the expected one.',
  run: main,
})

async function main(options: Values<typeof OPTIONS>): Promise<number> {
  if (!existsSync('/proc/self/stat')) throw new UsageError('CPU time is read from /proc, so this needs Linux')
  if (options.store.includes('redis') && spawnSync('redis-server', ['--version']).status !== 0) {
    throw new UsageError('--store redis: there is no redis-server on the path')
  }
  const runs: Run[] = []
  const tellResults = () => {
    const figures = figuresOf(rowsOf(runs), options)
    publish(reportOf(figures), figures, options)
  }
  stopOnSignal(tellResults)
  await runAll(options, runs)
  tellResults()
  return 0
}

/** All parts in each repetition, so that what is slow for a while is so for all of them. */
async function runAll(options: Values<typeof OPTIONS>, runs: Run[]): Promise<void> {
  const { store: stores, only: parts, repeat } = options
  for (const store of stores) await warmUp(store, options)
  for (let repetition = 1; repetition <= repeat; repetition++) {
    for (const part of parts) {
      for (const store of stores) {
        const ofPart = await RUNNERS[part](store, options)
        for (const run of ofPart) tell(`${repetition}/${repeat} ${progressLine(run)}`)
        runs.push(...ofPart)
      }
    }
  }
}

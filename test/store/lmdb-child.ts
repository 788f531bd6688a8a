/**
 * A process of lmdb-file.test.ts:
 *
 *   write DIR NAME TIMES     increments its own number in each transaction, and reports if the stored number is not its last;
 *                            at least TIMES transactions, and until the process that opens has finished
 *   open DIR NAME TIMES      opens and closes the files TIMES times, and then writes a file named `done`
 *   write-until-killed DIR   writes random records to the state
 */

import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { openState } from '../../src/store/embedded/environment.ts'
import { Random } from '../harness/random.ts'

const [what, dataDir = '', name = '', times = '1'] = process.argv.slice(2)
const done = join(dataDir, 'done')
const BAD_TRANSACTION = -30_782
let turns = 0

/** Shorter than an opening takes, so that many fall into it. */
const pause = () => new Promise(resolve => setImmediate(resolve))

async function write(): Promise<void> {
  const { file, probe } = openState(dataDir)
  const commit = () =>
    file.write(() => {
      const value = Number(probe.get(name) ?? 0)
      probe.putSync(name, String(turns + 1))
      return value
    })
  while (turns < Number(times) || !existsSync(done)) {
    let found: number
    try {
      found = commit()
    } catch (error) {
      // About one commit in some million is undone (src/store/embedded/requests.ts); the store makes it again too.
      if ((error as { code?: unknown }).code !== BAD_TRANSACTION) throw error
      found = commit()
    }
    if (found !== turns) throw new Error(`${name} had committed ${turns} and found ${found}`)
    turns++
    await pause()
  }
  await file.close()
}

async function openAndClose(): Promise<void> {
  while (turns < Number(times)) {
    await openState(dataDir).file.close()
    turns++
    await pause()
  }
  writeFileSync(done, '')
}

function writeUntilKilled(): void {
  const { file, windows } = openState(dataDir)
  const random = new Random(17)
  const writeOne = () => {
    file.write(() => windows.putSync(random.bytes(2), random.bytes(50)))
    setImmediate(writeOne)
  }
  writeOne()
  process.send!('writes')
  process.on('disconnect', () => process.exit())
}

if (what === 'write-until-killed') writeUntilKilled()
else {
  try {
    await (what === 'write' ? write() : openAndClose())
    process.stdout.write(`${turns}\n`)
  } catch (error) {
    process.stdout.write(`${name}: ${(error as Error).message}\n`)
  }
  process.exit()
}

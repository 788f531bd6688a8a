/**
 * A process of embedded-openers.test.ts: raises a number of its own by one in each transaction, and says so if the number is
 * not what it has left there; or opens and closes the files over and over.
 *
 *   node --import tsx test/store/opener.ts write|open <data dir> <name> <seconds>
 */

import { openState } from '../../src/store/embedded/environment.ts'

const [what, dataDir = '', name = '', seconds = '1'] = process.argv.slice(2)
const endAtMs = performance.now() + Number(seconds) * 1000
let turns = 0

/** Shorter than an opening takes, so that many fall into it. */
const pause = () => new Promise(resolve => setImmediate(resolve))

async function write(): Promise<void> {
  const { file, loads } = openState(dataDir)
  while (performance.now() < endAtMs) {
    const found = file.write(() => {
      const value = Number(loads.get(name) ?? 0)
      loads.putSync(name, String(turns + 1))
      return value
    })
    if (found !== turns) throw new Error(`${name} had committed ${turns} and found ${found}`)
    turns++
    await pause()
  }
  await file.close()
}

async function openAndClose(): Promise<void> {
  while (performance.now() < endAtMs) {
    await openState(dataDir).file.close()
    turns++
    await pause()
  }
}

try {
  await (what === 'write' ? write() : openAndClose())
  process.stdout.write(`${turns}\n`)
} catch (error) {
  process.stdout.write(`${name}: ${(error as Error).message}\n`)
}
process.exit()

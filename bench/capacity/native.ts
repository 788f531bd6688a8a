/** Measures native SHA-256 on this machine: the openssl program, which uses the processor's SHA instructions. */

import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { type Spread, spreadOf } from '../../test/harness/statistics.ts'

const BLOCK_BYTES = 64
/**
 * Long messages, because what counts is how fast blocks go through: a call for one short message takes openssl three
 * times as long as its block, which a solver written for the purpose has no need of.
 */
const MESSAGE_BYTES = 16_384
const REPETITIONS = 5

/** Blocks per second of CPU time, one thread, one stream; undefined where there is no openssl that can tell. */
export async function nativeBlocksPerSecond(repetitions = REPETITIONS): Promise<Spread | undefined> {
  const rates: number[] = []
  for (let repetition = 0; repetition < repetitions; repetition++) {
    const args = ['speed', '-mr', '-seconds', '1', '-bytes', String(MESSAGE_BYTES), '-evp', 'sha256']
    const text = await promisify(execFile)('openssl', args, { timeout: 30_000 }).then(
      ({ stdout }) => stdout,
      () => '',
    )
    const rate = blocksPerSecond(text)
    if (rate === undefined) return undefined
    rates.push(rate)
  }
  return spreadOf(rates)
}

/** @param text of `openssl speed -mr`: "+F:25:sha256:1721625166.10", bytes per second */
export function blocksPerSecond(text: string): number | undefined {
  const bytesPerSecond = Number(/^\+F:\d+:sha256:([\d.]+)$/m.exec(text)?.[1])
  return bytesPerSecond > 0 && Number.isFinite(bytesPerSecond) ? bytesPerSecond / BLOCK_BYTES : undefined
}

/** Runs shortened versions of the other benches if no files with their figures are given. */

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, openSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { build, THIS_TREE } from '../compare/tree.ts'
import type { Source } from './inputs.ts'

const RUNS: readonly (readonly [source: Source, args: readonly string[]])[] = [
  ['http', ['--repeat', '5', '--seconds', '1', '--json']],
  ['store', ['--store', 'redis', '--only', 'memory', '--max-addresses', '100000', '--json']],
  ['solver', ['--filter', 'WASM SIMD', '--json']],
]
/** Without it there is nothing to compute. */
const NEEDED: Source = 'http'

/** @param use gets files with the figures, which are removed at the end */
export async function runBenches<Result>(
  signal: AbortSignal,
  tell: (line: string) => void,
  use: (files: Readonly<Partial<Record<Source, string>>>) => Promise<Result>,
): Promise<Result> {
  const folder = mkdtempSync(join(tmpdir(), 'powgate-capacity-'))
  try {
    tell('building')
    await build(THIS_TREE, signal)
    const files: Partial<Record<Source, string>> = {}
    for (const [source, args] of RUNS) {
      const file = join(folder, `${source}.json`)
      tell(`bench/${source}: ${args.join(' ')}`)
      const code = await runBench(source, args, file, signal)
      signal.throwIfAborted()
      if (code === 0) files[source] = file
      else if (source === NEEDED) throw new Error(`bench/${source} ended with ${code}`)
      else tell(`bench/${source} ended with ${code}: left out`)
    }
    return await use(files)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** @returns its exit code */
async function runBench(
  source: Source,
  args: readonly string[],
  file: string,
  signal: AbortSignal,
): Promise<number | null> {
  const command = ['--import', 'tsx', join(THIS_TREE, 'bench/cli.ts'), source, ...args]
  const stdio = ['ignore' as const, openSync(file, 'w'), 'inherit' as const]
  const child = spawn(process.execPath, command, { cwd: THIS_TREE, stdio })
  const end = () => child.kill('SIGTERM')
  signal.addEventListener('abort', end, { once: true })
  const [code] = await once(child, 'close')
  signal.removeEventListener('abort', end)
  return code
}
